"""Conditions and sets of callers as text: `POST /charge`, `pods with app=orders-api in data`.

Tables, graphs, comparisons and explanations print conditions with this module. The text covers usual requests: another
workload calls, and no proxy refuses the path. The exact condition covers all requests.
"""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.ir import (
    ALWAYS,
    NEVER,
    And,
    Computed,
    InNetwork,
    Is,
    Labelled,
    Not,
    OneOf,
    Or,
    Predicate,
    Prefix,
    Present,
    Suffix,
    all_of,
    any_of,
    conjuncts,
    mentions,
)
from eastgate.ir.attributes import (
    APPLICATION,
    DESTINATION_ADDRESS,
    DESTINATION_DOMAIN,
    DESTINATION_LABELS,
    DESTINATION_NODE,
    HOST,
    METHOD,
    PACKET_SOURCE,
    PORT,
    PORT_NAME,
    REFUSED_PATH,
    SOURCE_LABELS,
    SOURCE_WORKLOAD,
    USUAL,
    VICINITY,
    Attribute,
    AttributeKind,
)
from eastgate.ir.symbolic.partial import Facts, residual
from eastgate.ir.symbolic.simplify import both, either, negation, straightened
from eastgate.ir.symbolic.stages import is_answer
from eastgate.reports.connections import is_list, peers, ports, selector_text, take, values_text

TWO_LINES = 120
"""Most characters of a condition that fits on two lines."""
_MIN_ALTERNATIVES_CHARS = 40  # characters of alternatives beside other requirements
USUAL_FACTS = Facts(USUAL)
"""The facts that hold for usual requests."""
VALID_TOKEN = Is(Attribute(AttributeKind.VALID_TOKEN), Present())
"""A valid token: the text for rules that require the two claims `iss` and `sub`. Used only in output."""

_PRINCIPAL = {"iss", "sub"}
_HTTP = Is(APPLICATION, OneOf(frozenset({"http"})))
_BYTES = Is(APPLICATION, OneOf(frozenset({"bytes"})))

_NOUNS = {
    SOURCE_WORKLOAD: "pod",
    PACKET_SOURCE: "address",
    DESTINATION_ADDRESS: "address",
    DESTINATION_DOMAIN: "domain",
    HOST: "host",
    PORT: "port",
    PORT_NAME: "port",
}
"""The words for attributes whose names do not occur in policies."""
_NEAR = {"itself": "the pod itself", "node": "its node"}


def usual(predicate: Predicate) -> Predicate:
    """Return the part of a condition that covers usual requests; NEVER if it covers none."""
    return residual(predicate, USUAL_FACTS)


def condition_text(predicate: Predicate, *, exact: bool = False, most: int | None = TWO_LINES) -> str:
    """Render a condition in about `most` characters.

    `exact`: cover all requests, not only usual ones, at any length.
    """
    if exact:
        return _text(predicate)
    shown = usual(predicate)
    shown = readable(predicate if shown == NEVER else shown)
    text = _text(shown)
    return text if most is None or len(text) <= most else _cut(shown, most)


def readable(predicate: Predicate) -> Predicate:
    """Return a condition without double negations. A condition on a valid token has one name."""
    return _named(straightened(predicate))


def _named(predicate: Predicate) -> Predicate:
    match predicate:
        case And():
            parts = [_named(part) for part in conjuncts(predicate)]
            return all_of(_with_token(parts, parts, VALID_TOKEN))
        case Or(parts):
            opposites = [negation(part) for part in parts]
            return any_of(_with_token(list(map(_named, parts)), opposites, Not(VALID_TOKEN)))
        case Not(part):
            return negation(_named(part))
        case _:
            return predicate


def _with_token(parts: list[Predicate], asked: list[Predicate], token: Predicate) -> list[Predicate]:
    """Replace the two parts about the claims `iss` and `sub` by one part about the token."""
    claims = [index for index, part in enumerate(asked) if some_claim(part) in _PRINCIPAL]
    if {some_claim(asked[index]) for index in claims} != _PRINCIPAL:
        return parts
    rest = [part for index, part in enumerate(parts) if index not in claims]
    return [*rest[: claims[0]], token, *rest[claims[0] :]]


def some_claim(part: Predicate) -> str | None:
    """Return the claim that a part requires with any value, or None."""
    match part:
        case Is(attribute, Present()) if attribute.kind is AttributeKind.CLAIM:
            return attribute.key
        case Computed(pattern=(attribute, ".+")) if attribute.kind is AttributeKind.CLAIM:
            return attribute.key
        case _:
            return None


def _cut(predicate: Predicate, most: int) -> str:
    """Render the alternatives or requirements that fit, and the number of the others.

    If one is left, it may be rendered too.
    """
    is_any = isinstance(predicate, Or)
    join, word = (either, "or") if is_any else (both, "and")
    shown: list[Predicate] = []
    left: list[Predicate] = []
    for part in predicate.parts if isinstance(predicate, Or) else conjuncts(predicate):
        fits = len(_text(join([*shown, part]))) <= most
        (shown if fits or (is_any and not shown) else left).append(part)
    if not shown and not isinstance(left[0], Or):
        shown.append(left.pop(0))
    text = _text(join(shown)) if shown else ""
    whole = _text(predicate)
    if not left or (len(left) == 1 and len(whole) <= most + most // 2):
        return whole
    if len(left) == 1 and isinstance(left[0], Or):
        last = _cut(left[0], max(most - len(text), _MIN_ALTERNATIVES_CHARS))
        return f"{text} and ({last})" if text else last
    return f"{text or _cut(left.pop(0), most)} {word} {len(left)} more"


def _text(predicate: Predicate) -> str:
    if predicate == ALWAYS:
        return "anything"
    if isinstance(predicate, Or) and not _is_path(predicate):
        return _alternatives(predicate.parts)
    return " and ".join(_texts(predicate))


def _texts(predicate: Predicate) -> list[str]:
    """Render requirements: one text for the request, one for the peers, one for the ports, and one for
    each other part.
    """
    parts = list(conjuncts(predicate))
    if any(attribute.needs_http for part in parts for attribute in mentions(part)):
        parts = [part for part in parts if part != _HTTP]  # other HTTP requirements imply HTTP
    texts = [*_requests(parts), *peers(parts, _part_text), *ports(parts)]  # each call takes its parts out of the list
    return [*texts, *map(_part_text, parts)]


def _alternatives(parts: Sequence[Predicate]) -> str:
    """Render alternatives. Pods that differ only in their labels are named once."""
    listed = [part for part in parts if isinstance(part, Is) and isinstance(part.matcher, Labelled)]
    pods = {part.attribute for part in listed} & {SOURCE_LABELS, DESTINATION_LABELS}
    if len(listed) == len(parts) > 1 and len(pods) == 1 and all(part.attribute in pods for part in listed):
        selectors = (part.matcher.selector for part in listed if isinstance(part.matcher, Labelled))
        return f"pods with {' or '.join(sorted(map(selector_text, selectors)))}"
    is_compound = any(len(_texts(part)) > 1 or any(isinstance(each, Not) for each in conjuncts(part)) for part in parts)
    joint = ", or " if is_compound else " or "
    return joint.join(map(_text, parts)) or "never"


# HTTP


def _requests(parts: list[Predicate]) -> list[str]:
    """Render methods and paths: `GET /cart* except /cart/admin`."""
    method = take(parts, lambda part: is_list(part, METHOD))
    paths = take(parts, _is_path)
    words = [" and ".join(map(values_text, some)) for some in (method, paths) if some]
    excepted = [part.part for part in take(parts, _is_exception) if isinstance(part, Not)]
    if excepted:
        only_paths = all(METHOD not in mentions(part) for part in excepted)
        words += [] if words else ["paths" if only_paths else "requests"]
        words.append(f"except {(', ' if only_paths else ' and ').join(map(_text, excepted))}")
    return [" ".join(words)] if words else []


def _is_exception(part: Predicate) -> bool:
    """Return whether a part excludes requests by methods and paths only."""
    if not isinstance(part, Not):
        return False
    excluded = [each for each in conjuncts(part.part) if each != _HTTP]
    return any(map(_is_path, excluded)) and all(is_list(each, METHOD) or _is_path(each) for each in excluded)


def _is_path(part: Predicate) -> bool:
    if isinstance(part, Or):
        return bool(part.parts) and all(_is_path(option) for option in part.parts)
    if not isinstance(part, Is) or part.attribute.kind is not AttributeKind.PATH:
        return False
    return isinstance(part.matcher, OneOf | Prefix | Suffix)


# Other attributes


def _part_text(part: Predicate) -> str:
    if mentions(part) == {APPLICATION}:
        return "HTTP" if part in (_HTTP, Not(_BYTES)) else "no HTTP"
    match part:
        case Or():
            return f"({_text(part)})"
        case Not(Is(attribute, Present())):
            return "no HTTP" if attribute == METHOD else f"no {_noun(attribute)}"
        case Not(Or(options)) if all(isinstance(option, Is | Computed) for option in options):
            return " and ".join(_part_text(negation(option)) for option in options)
        case Not(Is(attribute, InNetwork(networks))):
            return f"{_noun(attribute)} not in {', '.join(map(str, networks))}"
        case Not(And() | Or() as inner):
            text = _text(inner)
            return f"not {text}" if " " not in text else f"not ({text})"
        case Not(inner):
            return f"not {_text(inner)}"
        case Is():
            return _atom_text(part)
        case And() | Computed():
            return str(part)


def _atom_text(atom: Is) -> str:
    noun = _noun(atom.attribute)
    if atom == VALID_TOKEN:
        return f"a {noun}"
    match atom.matcher:
        case OneOf() if is_answer(atom.attribute):
            return f"{atom.attribute.key} allows"
        case OneOf(values) if atom.attribute == VICINITY:
            return f"from {' or '.join(_NEAR[str(value)] for value in sorted(values, key=str))}"
        case OneOf() if atom.attribute in _NOUNS:
            return f"{noun} {values_text(atom)}"
        case Prefix() | Suffix() as matcher if atom.attribute in (HOST, DESTINATION_DOMAIN):
            return f"{noun} {matcher}"
        case Labelled(selector) if atom.attribute == DESTINATION_NODE:
            return f"nodes with {selector_text(selector)}" if selector.keys else "any node"
        case InNetwork(networks):
            return f"{noun} in {', '.join(map(str, networks))}"
        case Present() if atom.attribute == REFUSED_PATH:
            return "a path that proxies refuse"
        case Present():
            return f"any {noun}"
        case _:
            return str(atom)


def _noun(attribute: Attribute) -> str:
    return _NOUNS.get(attribute, str(attribute))
