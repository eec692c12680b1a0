"""Parts of manifests that cannot be read, among the objects that an answer could not consider.

A part is a file with bad syntax, an object with errors, a kustomization that does not build, a chart. Unlike an unread
kind, a part is the result of a mistake or a missing tool, so that `--unread ignore` does not ignore it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import Everything, GatewaysMatching, HostNamed, PodsAcross, Target
from eastgate.cluster.unread.codes import LEFT_OUT
from eastgate.cluster.unread.model import (
    EnforcementPlane,
    TargetField,
    Unconsidered,
    Unread,
    UnreadEffect,
    UnreadKind,
    UnreadMatch,
    UnreadTargets,
)
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.placeholders import names_of_variables
from eastgate.reading.manifests.rendered import LostPart
from eastgate.reading.repository import LeftOut

MOST_LISTED = 5
_MAX_HOMES = 3  # homes, and parts, in one line
PART = UnreadKind("", "part", UnreadEffect.CHANGE, EnforcementPlane.MESH, TargetField.CLUSTER)
PART_AT_GATEWAYS = UnreadKind("", "part", UnreadEffect.CHANGE, EnforcementPlane.GATEWAY, TargetField.TARGET_REFS)
IDLE_PART = UnreadKind("", "part", UnreadEffect.NONE, EnforcementPlane.MESH, TargetField.CLUSTER)

_EVERYTHING: tuple[Target, ...] = (Everything(None),)
_numbers = count()


def lost_part(
    part: LeftOut, span: Span | None = None, targets: tuple[Target, ...] = _EVERYTHING, text: str | None = None
) -> Unread:
    """Return a part whose objects are unknown. `text` is its whole text, if it is known.

    In a comparison, two parts are equal if their texts are.
    """
    content = f"{next(_numbers)}" if text is None else text
    name = part.where or part.what
    document = Document("", "part", name, None, None, {"text": content}, LostPart(name, span))
    kind = PART if part.can_decide else IDLE_PART
    return Unread(kind, UnreadTargets(targets, targets), document, part)


def lost_object(part: LeftOut, document: Document, targets: tuple[Target, ...], *, at_gateways: bool = False) -> Unread:
    """Return an object that is left out, with the targets that it may affect."""
    kind = PART_AT_GATEWAYS if at_gateways else PART
    return Unread(kind if part.can_decide else IDLE_PART, UnreadTargets(targets, targets), document, part)


def object_with_open_hosts(
    document: Document, hosts: Mapping[str, bool], where: str, gateways: tuple[Target, ...]
) -> Unread:
    """Return an object whose hosts alone are unknown. Some Gateways may treat requests for these hosts differently.

    `hosts` are its hostnames with variables. The value tells whether a TLS handshake chooses by the hostname: then it
    may be any host.
    """
    named = " and ".join(f"`{host}`" for host in hosts)
    what = f"the host{'s' if len(hosts) > 1 else ''} {named} of {document.kind} {document.home}/{document.name}"
    variables = dict.fromkeys(name for host in hosts for name in names_of_variables(host))
    part = LeftOut(what, where, f"depends on {' and '.join(variables)}")
    patterns = (*hosts, *(["*"] if any(hosts.values()) else []))
    return Unread(PART_AT_GATEWAYS, UnreadTargets(gateways), document, part, patterns)


def parts_of(matches: Iterable[UnreadMatch | Unread]) -> list[LeftOut]:
    """Return the parts among some objects, each once."""
    return [unread.part for unread in _lost(matches) if unread.part is not None]


def _lost(matches: Iterable[UnreadMatch | Unread]) -> list[Unread]:
    objects = (each.unread if isinstance(each, UnreadMatch) else each for each in matches)
    return list({unread.part: unread for unread in objects if unread.part is not None}.values())


def list_left_out(objects: Iterable[UnreadMatch | Unread], most: int | None = MOST_LISTED) -> Iterator[str]:
    """List the parts among some objects, for people: the reason, and the objects that they may affect.

    Parts with one reason share a line. Only the first `most` lines are listed; without `most` each part has a line.
    """
    groups = group_left_out(objects, singly=most is None)
    for group in groups[:most]:
        yield describe_group(group)
    if more := sum(map(len, groups[most:])) if most is not None else 0:
        yield left_out_more(more)


def left_out_more(count: int) -> str:
    """Return a line with the number of unlisted parts, and the command that lists them."""
    return f"left out: {count} more: eastgate get environments, or -v"


def group_left_out(objects: Iterable[UnreadMatch | Unread], *, singly: bool = False) -> list[list[Unread]]:
    """Group the parts among some objects by their reasons. `singly`: make a group of each part."""
    groups: dict[object, list[Unread]] = {}
    for unread in _lost(objects):
        part = unread.part
        key = part if part is None or singly or unread.hosts else (part.reason or part.why, part.can_decide)
        groups.setdefault(key, []).append(unread)
    return list(groups.values())


def describe_group(group: Sequence[Unread]) -> str:
    """Describe the parts that share a reason in one line."""
    parts = [unread.part for unread in group if unread.part is not None]
    about = _about(group)
    if len(parts) == 1 and group[0].hosts:
        return f"not known: {parts[0]}"
    if len(parts) == 1:
        return f"left out: {parts[0]}" + (f" (it may be about {about})" if about else "")
    names = [f"{part.what}{f' ({part.where})' if part.where else ''}" for part in parts]
    more = f" and {len(names) - _MAX_HOMES} more" if len(names) > _MAX_HOMES else ""
    reason = parts[0].reason or parts[0].why
    about = f" (they may be about {about})" if about else ""
    return f"left out: {', '.join(names[:_MAX_HOMES])}{more}: {reason}{about}"


def _about(group: Iterable[Unread]) -> str:
    """Describe the objects that parts may affect; empty if the parts decide nothing."""
    homes: dict[str, None] = {}
    for target in (target for unread in group for target in _targets(unread)):
        match target:
            case Everything(None) | PodsAcross() | HostNamed() | GatewaysMatching(None):
                return "anything"
            case Everything(namespace):
                homes[f"anything in {namespace}"] = None
            case _:
                homes[str(target)] = None
    more = f" and {len(homes) - _MAX_HOMES} more" if len(homes) > _MAX_HOMES else ""
    return ", ".join(list(homes)[:_MAX_HOMES]) + more


def _targets(unread: Unread) -> Sequence[Target]:
    return () if unread.kind.effect is UnreadEffect.NONE else tuple(unread.targets.destinations)


def describe_left_out(unconsidered: Unconsidered) -> Iterator[str]:
    """Describe the parts that could change an answer, in a few lines."""
    return list_left_out(unconsidered.matches)


def diagnose_left_out(parts: Iterable[LeftOut]) -> Iterator[Diagnostic]:
    """Yield an error for each part: an answer would be incomplete without it."""
    for part in parts:
        yield Diagnostic(LEFT_OUT, f"left out: {part}", None, "fix it, or leave it out on purpose: --exclude")
