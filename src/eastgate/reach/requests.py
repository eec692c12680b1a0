"""Classes of requests that no rule distinguishes: ports, and MCP messages with their tools."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from eastgate.basics.records import dataclass
from eastgate.ir import Between, Computed, Is, Matcher, OneOf, Prefix, Suffix
from eastgate.ir.attributes import MCP_METHOD, MCP_TOOL, PORT, Attribute
from eastgate.ir.symbolic.cells import OTHER
from eastgate.ir.symbolic.partial import Facts
from eastgate.reading.mcp.messages import NAMED

_CALL = "tools/call"


@dataclass(frozen=True, slots=True)
class PortClass:
    """Ports that no rule distinguishes. `others`: also all unnamed ports of these `ranges`."""

    ports: tuple[int, ...]
    others: bool
    facts: Facts
    ranges: tuple[Between, ...] = ()


EVERY_PORT = Between(1, 65_535)


def port_classes(looked_at: Iterable[Is | Computed], declared: Iterable[int]) -> list[PortClass]:
    """Return one class for each declared port and each port in a rule, and classes for all others (usually one)."""
    matchers = [a.matcher for a in looked_at if isinstance(a, Is) and a.attribute == PORT]
    named: dict[int, list[int]] = {port: [] for port in declared}
    for number, matcher in enumerate(matchers):
        for value in matcher.values if isinstance(matcher, OneOf) else ():
            if isinstance(value, int):
                named.setdefault(value, []).append(number)
    ranges = [(number, matcher) for number, matcher in enumerate(matchers) if isinstance(matcher, Between)]
    classes: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for port in sorted(named):
        within = [number for number, matcher in ranges if matcher.contains(port)]
        classes[tuple(sorted([*named[port], *within]))].append(port)
    unnamed: dict[tuple[int, ...], list[tuple[Between, int]]] = defaultdict(list)
    for stretch in _split_ranges(matcher for _, matcher in ranges):
        free = next((port for port in range(stretch.first, stretch.last + 1) if port not in named), None)
        if free is not None:
            key = tuple(number for number, matcher in ranges if matcher.contains(free))
            unnamed[key].append((stretch, free))
    listed = [
        PortClass(tuple(ports), False, Facts({PORT: ports[0]})) for key, ports in classes.items() if key not in unnamed
    ]
    for key, stretches in unnamed.items():
        facts = Facts({PORT: stretches[0][1]}, frozenset({PORT}))
        covered = tuple(stretch for stretch, _ in stretches)
        listed.append(PortClass(tuple(classes.get(key, ())), True, facts, covered))
    return listed


def _split_ranges(ranges: Iterable[Between]) -> Iterator[Between]:
    """Yield the ranges of ports between the ends of the given ranges. No given range splits one of them."""
    starts = {start for matcher in ranges for start in (matcher.first, matcher.last + 1)}
    cuts = sorted({EVERY_PORT.first, *(start for start in starts if EVERY_PORT.contains(start))})
    for first, following in zip_longest(cuts, cuts[1:], fillvalue=EVERY_PORT.last + 1):
        yield Between(first, following - 1)


@dataclass(frozen=True, slots=True)
class EffectiveMessage:
    """An MCP message, or several that no rule distinguishes: the method and the tool. `*` represents all others.

    No method: the request is not an MCP message. `method` is None and `any` is set if no rule reads messages.
    """

    method: str | None
    tool: str | None
    facts: Facts
    any: bool = False

    def __str__(self) -> str:
        if self.any:
            return "anything"
        if self.method is None:
            return "no MCP message"
        if self.method == _CALL:
            return f"tool {self.tool}" if self.tool != "*" else "any other tool"
        method = "any other MCP method" if self.method == "*" else self.method
        return method if self.tool is None else f"{method} {self.tool if self.tool != '*' else '(any other)'}"


ANY_MESSAGE = EffectiveMessage(None, None, Facts(), any=True)


def messages(looked_at: Sequence[Is | Computed]) -> list[EffectiveMessage]:
    """Return each message that a rule names, and one for all others."""
    mentioned: set[Attribute] = set()
    for atom in looked_at:
        mentioned |= {atom.attribute} if isinstance(atom, Is) else atom.attributes
    if not mentioned & {MCP_METHOD, MCP_TOOL}:
        return [ANY_MESSAGE]
    methods = dict(_texts(a.matcher for a in looked_at if isinstance(a, Is) and a.attribute == MCP_METHOD))
    tools = dict(_texts(a.matcher for a in looked_at if isinstance(a, Is) and a.attribute == MCP_TOOL))
    prefixes = [name[:-1] for name in methods if name.endswith("*")]
    methods |= {method: method for method in NAMED if method == _CALL or any(method.startswith(p) for p in prefixes)}
    listed = [
        _message(name, method, tool, value)
        for name, method in sorted(methods.items(), key=lambda item: (item[0] != _CALL, item[0]))
        for tool, value in ([*sorted(tools.items()), ("*", OTHER)] if method in NAMED else [(None, None)])
    ]
    return [*listed, _message("*", OTHER, None, None), _message(None, None, None, None)]


def _message(name: str | None, method: str | None, tool: str | None, value: str | None) -> EffectiveMessage:
    vague = {MCP_METHOD} if name != method else set()
    vague |= {MCP_TOOL} if tool != value else set()
    return EffectiveMessage(name, tool, Facts({MCP_METHOD: method, MCP_TOOL: value}, frozenset(vague)))


def _texts(matchers: Iterable[Matcher]) -> Iterator[tuple[str, str]]:
    """Yield a name for each class of texts, and a text in it."""
    given = list(matchers)
    starts = sorted({m.text for m in given if isinstance(m, Prefix)})
    ends = sorted({m.text for m in given if isinstance(m, Suffix)})
    for matcher in given:
        if isinstance(matcher, OneOf):
            yield from ((str(value), str(value)) for value in matcher.values)
    for start in ["", *starts]:
        for end in ["", *ends]:
            if start or end:
                yield f"{start}*{end}", f"{start}{OTHER}{end}"
