"""Builds several kustomizations in one run of a program, because its start takes longer than most builds.

A kustomization that includes all of them would be one build: kustomize adapts references to renamed objects, and
refuses two objects of one name. So no two kustomizations of a batch define an object of the same name, and none has a
word that is the name of an object which another one may rename or move. A kustomization is only included if its objects
have the names in its files. The output must be exactly these objects. Otherwise the batch is divided, and in the end
each kustomization is built alone.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.node import Plain
from eastgate.reading.manifests.rendering import ProgramOutput
from eastgate.reading.repository.closure import BuildFiles
from eastgate.reading.repository.deciding import GENERATED, RESOURCES
from eastgate.reading.repository.declarations import entries, mapping, text_of, texts
from eastgate.reading.repository.kustomize import ANY_FOLDER, KustomizationBuild
from eastgate.reading.repository.kustomized import relocated, split
from eastgate.reading.repository.running import BuildContext, in_copy
from eastgate.reading.repository.written import ObjectName, words_in

_FOLDER: Final = ".eastgate-builds"
_MAX_MEMBERS = 64
_MAX_MEMBER_BYTES = 512 * 1024  # large members gain little
_MAX_BATCH_BYTES = 4 * 1024 * 1024
_FIELDS: Final = frozenset(
    {
        "apiVersion",
        "bases",
        "buildMetadata",
        "commonAnnotations",
        "commonLabels",
        "components",
        "configMapGenerator",
        "configurations",
        "generatorOptions",
        "images",
        "kind",
        "labels",
        "metadata",
        "namespace",
        "patches",
        "patchesJson6902",
        "patchesStrategicMerge",
        "replicas",
        "resources",
        "secretGenerator",
    }
)
"""Fields of kustomizations that affect only their own objects."""
_REFERENCED_KINDS: Final = frozenset({"Service", "ServiceAccount"})
"""Kinds of objects that references name together with a namespace."""
_RENAMING_WORDS = (b"$patch", b"local-config", b"needs-hash", b"/metadata/name", b"allowNameChange", b"allowKindChange")
"""Words of patches and annotations that rename objects, or leave them out."""
_HASH = regex(r"-[a-z0-9]{10}\Z")
_HEAD = regex(r"(?m)^(?:kind: (.+)|  name: (.+)|metadata:)$")


@dataclass(slots=True, eq=False)
class _Member:
    """A kustomization in a batch: its key in the cache, its objects, and the names that others must not contain.

    `settings` are files that configure references. They apply to the whole batch.
    """

    build: KustomizationBuild
    closure: BuildFiles
    key: str
    objects: Counter[ObjectName]
    generated: frozenset[ObjectName]
    moved: frozenset[bytes]
    settings: frozenset[bytes]
    contents: Mapping[str, bytes]
    words: frozenset[bytes]


@dataclass(slots=True, eq=False)
class _Batch:
    """Kustomizations that can be built together."""

    settings: frozenset[bytes]
    members: list[_Member] = field(default_factory=list)
    objects: set[ObjectName] = field(default_factory=set)
    moved: set[bytes] = field(default_factory=set)
    words: set[bytes] = field(default_factory=set)
    contents: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    size: int = 0

    def add(self, member: _Member) -> bool:
        """Add a kustomization if it is independent of the others. Return whether it was added."""
        size = sum(map(len, member.contents.values()))
        if len(self.members) == _MAX_MEMBERS or self.size + size > _MAX_BATCH_BYTES:
            return False
        if not self.objects.isdisjoint(member.objects) or self.settings != member.settings:
            return False
        if not self.moved.isdisjoint(member.words) or not self.words.isdisjoint(member.moved):
            return False
        if _differ(self.contents, member.contents) or _differ(self.links, member.closure.links):
            return False
        self.members.append(member)
        self.objects.update(member.objects)
        self.moved |= member.moved
        self.words |= member.words
        self.contents.update(member.contents)
        self.links.update(member.closure.links)
        self.size += size
        return True


Batch = Sequence[_Member]


def batches_of(builds: Iterable[KustomizationBuild]) -> list[Batch]:
    """Return batches of the given builds, without those that must be built alone."""
    batches: list[_Batch] = []
    keys: set[str] = set()
    for build in builds:
        member = _member(build)
        if member is None or member.key in keys:
            continue
        keys.add(member.key)
        if not any(batch.add(member) for batch in batches):
            batches.append(_Batch(member.settings))
            batches[-1].add(member)
    return [batch.members for batch in batches if len(batch.members) > 1]


def build_batch(batch: Batch, context: BuildContext) -> None:
    """Build the members of a batch, together if possible, and keep the results for their own runs."""
    waiting = [batch]
    while waiting:
        members = waiting.pop()
        found = _built(members, context)
        if found is not None:
            for member, content in zip(members, found, strict=True):
                context.keep(member.key, ProgramOutput(content), soon=True)
        elif len(members) > 3:
            middle = len(members) // 2
            waiting += [members[:middle], members[middle:]]


def _member(build: KustomizationBuild) -> _Member | None:
    """Return a build as a member of batches; None if it must be built alone."""
    if build.inflated or build.is_strict or not build.is_understood:
        return None
    if any(not value.keys() <= _FIELDS for value in build.values):
        return None
    closure, key = build.tries[0]
    contents = dict(closure.contents())
    if sum(map(len, contents.values())) > _MAX_MEMBER_BYTES:
        return None
    if any(word in content for content in contents.values() for word in _RENAMING_WORDS):
        return None
    generated = [each for value in build.values for each in _generated(value)]
    objects = Counter(generated)
    spaces = _namespaces(build)
    if spaces is None:
        return None
    for part in build.taken:
        names = part.file.objects if part.field in RESOURCES else None
        if names is None:
            return None
        for kind, name in names:  # a Namespace gets the name of the namespace that objects are moved to
            objects[kind, spaces.get(part.folder) or name if kind == "Namespace" else name] += 1
    if not objects:
        return None
    settings = frozenset(_settings(build))
    moved = [name for kind, name in objects if settings or kind in _REFERENCED_KINDS] if any(spaces.values()) else []
    shunned = frozenset(name.encode() for name in [*moved, *(name for _, name in generated)])
    words = [file.words for path, file in closure.files.items() if path not in closure.replaced]
    words += map(words_in, closure.replaced.values())
    every = frozenset[bytes]().union(*words)
    return _Member(build, closure, key, objects, frozenset(generated), shunned, settings, contents, every)


def _generated(kustomization: Mapping[str, Plain]) -> Iterator[ObjectName]:
    """Yield the objects that generators of a kustomization add."""
    for key, kind in GENERATED.items():
        for entry in entries(kustomization.get(key)):
            if mapping(entry).get("behavior") in (None, "", "create"):
                yield kind, text_of(mapping(entry).get("name"))


def _namespaces(build: KustomizationBuild) -> dict[str, str] | None:
    """Return the final namespace of the objects of each folder. The outermost `namespace` wins.

    Return None if a folder is included more than once.
    """
    found = {build.root: text_of(build.folders[build.root].value.get("namespace"))}
    waiting = [build.root]
    while waiting:
        path = waiting.pop()
        for inner in build.folders[path].inner:
            if inner in found or inner not in build.folders:
                return None
            found[inner] = found[path] or text_of(build.folders[inner].value.get("namespace"))
            waiting.append(inner)
    return found


def _settings(build: KustomizationBuild) -> Iterator[bytes]:
    for path, folder in build.folders.items():
        for name in texts(folder.value.get("configurations")):
            file = build.closure.files.get(os.path.realpath(os.path.join(path, name)))
            yield file.content if file is not None else b""


def _differ(some: Mapping[str, object], others: Mapping[str, object]) -> bool:
    return any(path in some and some[path] != value for path, value in others.items())


def _built(members: Batch, context: BuildContext) -> list[bytes] | None:
    """Return the output of each member; None if it is uncertain."""
    union = BuildFiles(members[0].closure.paths, members[0].closure.cache)
    for member in members:
        closure = member.closure
        union.files |= closure.files
        union.links |= closure.links
        union.folders |= closure.folders
        union.above |= closure.above
        union.linked |= closure.linked
        union.replaced |= closure.replaced
    top = os.path.join(union.root(), _FOLDER)
    resources = [os.path.relpath(member.build.root, top) for member in members]
    content = {"resources": resources, "buildMetadata": ["originAnnotations"]}
    union.replaced[os.path.join(top, "kustomization.yaml")] = json.dumps(content).encode()
    union.folders.add(top)
    output = context.run(union, members[0].build.command, [ANY_FOLDER, "--", in_copy(top, union)])
    return None if output.problem is not None else _divided(output.content, members, top)


def _divided(content: bytes, members: Batch, top: str) -> list[bytes] | None:
    """Return the objects of each member; None if the output does not have exactly these objects."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    owners = {name: member for member in members for name in member.objects}
    left = {id(member): member.objects.copy() for member in members}
    found: dict[int, list[str]] = {id(member): [] for member in members}
    for document in split(text):
        name = _name_of(document)
        if name not in owners:
            base = name[0], _HASH.sub("", name[1])
            name = base if base in owners and base in owners[base].generated else name
        member = owners.get(name)
        if member is None or left[id(member)][name] == 0:
            return None
        left[id(member)][name] -= 1
        moved = relocated(document, top, member.build.root)
        if moved is None:
            return None
        found[id(member)].append(moved)
    if any(sum(objects.values()) for objects in left.values()):
        return None
    return ["---\n".join(found[id(member)]).encode() for member in members]


def _name_of(document: str) -> ObjectName:
    """Return the kind and name of an object in the output of kustomize, whose keys are in a fixed order."""
    kind = name = ""
    is_inside = False
    for match in _HEAD.finditer(document):
        if match[0] == "metadata:":
            is_inside = True
        elif match[1] is not None:
            kind = match[1]
        elif is_inside and not name:
            name = match[2].strip("\"'")
    return kind, name
