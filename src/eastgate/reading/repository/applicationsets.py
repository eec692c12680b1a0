"""ApplicationSets of Argo CD: the Applications that their generators make from a checkout.

Lists, folders and files of the repository are followed, alone and in a matrix or a merge. Generators that ask a
cluster, a Git host or a plugin are unknown here: such parameters stay as they are written, and the Application has the
reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import islice
from typing import Final

from eastgate.basics.regexes import regex
from eastgate.reading.manifests.files import SUFFIXES
from eastgate.reading.manifests.node import Plain
from eastgate.reading.repository.declarations import Declaration, entries, mapping, text_of
from eastgate.reading.repository.patching import merged
from eastgate.reading.repository.tree import Folder, Tree

OPEN: Final = "\0open"
"""The key of an Application with the reason why some of its parameters are unknown."""
_MAX_APPLICATIONS = 1000  # of one ApplicationSet
_PLACE = regex(r"\{\{-?\s*([^{}]*?)\s*-?\}\}")
_NAME = regex(r"\.?([\w.\[\]/-]+)")
_INDEX = regex(r"index\s+\.?([\w.]+)\s+\"?([\w./-]+)\"?")
_STEP = regex(r"[^.\[\]]+")
_ASKS: Final = {
    "clusters": "asks Argo CD for its clusters",
    "clusterDecisionResource": "asks a cluster",
    "scmProvider": "asks a Git host for its repositories",
    "pullRequest": "asks a Git host for its pull requests",
    "plugin": "asks a plugin",
}

Parameters = dict[str, Plain]


def applications_of(tree: Tree, generated: Declaration) -> Iterator[Declaration]:
    """Yield the Applications of an ApplicationSet, one for each combination of parameters."""
    spec = generated.spec
    template = mapping(spec.get("template"))
    seen: list[Plain] = []
    for generator in entries(spec.get("generators")):
        fields = mapping(generator)
        own = _template_of(fields)
        for parameters in islice(_generated(tree, fields, 0), _MAX_APPLICATIONS):
            filled = mapping(fill(merged(template, own), parameters))
            data: dict[str, Plain] = {**filled, "apiVersion": generated.data.get("apiVersion"), "kind": "Application"}
            why, content = text_of(parameters.get(OPEN)), mapping(filled.get("spec"))
            if why and _has_place(content):
                data[OPEN] = f"its generator {why}"
            if data not in seen:
                seen.append(data)
                application = generated.with_data(data)
                if spec.get("templatePatch"):
                    application.unsure = "its templatePatch is not followed"
                elif not why and any(_has_place(content.get(key)) for key in ("source", "sources")):
                    application.unsure = "its template has an expression that is not followed"
                metadata = mapping(data.get("metadata"))
                if _has_place(metadata.get("name")):
                    data["metadata"] = {**metadata, "name": generated.name}
                yield application


def _template_of(generator: Mapping[str, Plain]) -> Plain:
    return next((mapping(value)["template"] for value in generator.values() if mapping(value).get("template")), {})


def _generated(tree: Tree, generator: Mapping[str, Plain], depth: int) -> Iterator[Parameters]:
    """Yield the parameters of a generator. If it cannot be followed, yield the reason under a special key."""
    if "list" in generator:
        for element in entries(mapping(generator["list"]).get("elements")):
            yield mapping(element)
    elif "git" in generator:
        yield from _git(tree, mapping(generator["git"]))
    elif "matrix" in generator and depth < 3:
        yield from _matrix(tree, entries(mapping(generator["matrix"]).get("generators")), {}, depth)
    elif "merge" in generator and depth < 3:
        yield from _merge(tree, mapping(generator["merge"]), depth)
    else:
        asks = next((why for name, why in _ASKS.items() if name in generator), "cannot be followed")
        yield {OPEN: asks}


def _matrix(tree: Tree, generators: list[Plain], before: Parameters, depth: int) -> Iterator[Parameters]:
    if not generators:
        yield before
        return
    first, *others = generators
    for parameters in islice(_generated(tree, mapping(fill(first, before)), depth + 1), _MAX_APPLICATIONS):
        yield from _matrix(tree, others, {**before, **parameters}, depth)


def _merge(tree: Tree, merge: Mapping[str, Plain], depth: int) -> Iterator[Parameters]:
    keys = [key for key in entries(merge.get("mergeKeys")) if isinstance(key, str)]
    rows: list[Parameters] = []
    for number, generator in enumerate(entries(merge.get("generators"))):
        for parameters in islice(_generated(tree, mapping(generator), depth + 1), _MAX_APPLICATIONS):
            if number == 0 or OPEN in parameters:
                rows.append(parameters)
            for index, row in enumerate(rows if number else ()):
                if all(row.get(key) == parameters.get(key) for key in keys):
                    rows[index] = mapping(merged(row, parameters))
    yield from rows


def _git(tree: Tree, git: Mapping[str, Plain]) -> Iterator[Parameters]:
    values: Plain = git.get("values") or {}
    rows = _folders(tree, git) if "directories" in git else _files(tree, git)
    for row in rows:
        yield {**row, "values": fill(values, row)} if values else row


def _patterns(entries_: list[Plain]) -> tuple[list[str], list[str]]:
    """Return the patterns of included and of excluded paths."""
    fields = [mapping(entry) for entry in entries_]
    taken = [text_of(each.get("path")).strip("/") for each in fields if each.get("exclude") is not True]
    return taken, [text_of(each.get("path")).strip("/") for each in fields if each.get("exclude") is True]


def _folders(tree: Tree, git: Mapping[str, Plain]) -> Iterator[Parameters]:
    """Yield the parameters of each folder that the patterns match."""
    taken, excluded = ([p.replace("**", "*") for p in each] for each in _patterns(entries(git.get("directories"))))
    for base in _bases(tree):
        found = False
        for folder in base.walk():
            path = os.path.relpath(folder.path, base.path).replace(os.sep, "/")
            if path != "." and matches_any(path, taken) and not matches_any(path, excluded):
                found = True
                yield _path_parameters(path)
        if found:
            return


def _files(tree: Tree, git: Mapping[str, Plain]) -> Iterator[Parameters]:
    """Yield the parameters of each file that the patterns match: its content and its path."""
    taken, excluded = _patterns(entries(git.get("files")))
    for base in _bases(tree):
        found = False
        for folder in base.walk():
            for name in _names(folder):
                path = os.path.relpath(os.path.join(folder.path, name), base.path).replace(os.sep, "/")
                if not matches_any(path, taken) or matches_any(path, excluded):
                    continue
                found = True
                place = _path_parameters(os.path.dirname(path) or ".")
                mapping(place["path"])["filename"] = name
                for value in tree.values(os.path.join(folder.path, name)):
                    rows = value if isinstance(value, list) else [value]
                    yield from ({**mapping(row), **place} for row in rows)
        if found:
            return


def _names(folder: Folder) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder.path) if name.lower().endswith(SUFFIXES))
    except OSError:
        return []


def _bases(tree: Tree) -> Iterator[Folder]:
    """Yield the root of the repository, then the given folder."""
    base = tree.folder(tree.base)
    if base is not None:
        yield base
    if base is not tree.root:
        yield tree.root


def matches_any(path: str, patterns: list[str]) -> bool:
    """Return whether a path with slashes matches one of several patterns."""
    return any(_matches(path.split("/"), pattern.split("/")) for pattern in patterns)


def _matches(steps: list[str], pattern: list[str]) -> bool:
    """Return whether a pattern matches a path, step by step; `**` is any number of steps."""
    if len(pattern) > 30 or pattern.count("**") > 2:
        return False
    if not pattern or not steps:
        return not steps and all(step == "**" for step in pattern)
    if pattern[0] == "**":
        return _matches(steps, pattern[1:]) or _matches(steps[1:], pattern)
    return fnmatchcase(steps[0], pattern[0]) and _matches(steps[1:], pattern[1:])


def _path_parameters(path: str) -> Parameters:
    basename = os.path.basename(path)
    segments: list[Plain] = [*path.split("/")]
    normal = "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in basename.lower())
    return {"path": {"": path, "path": path, "basename": basename, "basenameNormalized": normal, "segments": segments}}


def fill(value: Plain, parameters: Mapping[str, Plain]) -> Plain:
    """Return a value with the known parameters filled in. Of templates, only names and `index` are supported."""
    if isinstance(value, str):
        return _PLACE.sub(lambda match: _value(match[1], parameters, match[0]), value) if "{{" in value else value
    if isinstance(value, list):
        return [fill(item, parameters) for item in value]
    if isinstance(value, dict):
        return {key: fill(item, parameters) for key, item in value.items()}
    return value


def _value(expression: str, parameters: Mapping[str, Plain], written: str) -> str:
    name, index = _NAME.fullmatch(expression), _INDEX.fullmatch(expression)
    if name is not None:
        found = _look_up(parameters, name[1])
    elif index is not None:
        found = _look_up(parameters, f"{index[1]}.{index[2]}")
    else:
        found = None
    if isinstance(found, dict):
        found = found.get("")
    if isinstance(found, bool):
        return str(found).lower()
    return str(found) if isinstance(found, str | int | float) else written


def _look_up(parameters: Mapping[str, Plain], name: str) -> Plain:
    """Return the value at a path of keys: `cluster.name`, `path.segments[0]` or, in the old form, `path[0]`."""
    if name in parameters:
        return parameters[name]
    found: Plain = dict(parameters)
    for step in _STEP.findall(name):
        if isinstance(found, dict) and "segments" in found and step.isdecimal():
            found = found["segments"]
        if isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        elif isinstance(found, dict) and step in found:
            found = found[step]
        else:
            return None
    return found


def _has_place(value: Plain) -> bool:
    if isinstance(value, dict | list):
        return any(_has_place(item) for item in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and _PLACE.search(value) is not None
