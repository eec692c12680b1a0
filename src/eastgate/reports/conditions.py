"""Conditions and sets of callers in the words of policies: `POST /charge`, `pods with app=orders-api in data`.

Tables, graphs, comparisons and explanations print conditions with this module. They are about usual requests: the
caller is another workload, and proxies take the path. The exact condition has the other requests too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from eastgate.cluster import NAME_LABEL
from eastgate.ir import (
    ALWAYS,
    NEVER,
    And,
    Between,
    Computed,
    InNetwork,
    Is,
    Known,
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
    labels_of,
    mentions,
)
from eastgate.ir.attributes import (
    APPLICATION,
    DESTINATION_ADDRESS,
    DESTINATION_DOMAIN,
    DESTINATION_LABELS,
    DESTINATION_NAMESPACE,
    DESTINATION_NODE,
    HOST,
    METHOD,
    PACKET_SOURCE,
    PORT,
    PORT_NAME,
    REFUSED_PATH,
    SOURCE_LABELS,
    SOURCE_NAMESPACE,
    SOURCE_WORKLOAD,
    TRANSPORT,
    UNKNOWN,
    USUAL,
    VICINITY,
    Attribute,
    AttributeKind,
    Unknown,
)
from eastgate.ir.labels import Operator, Selector
from eastgate.ir.symbolic.partial import Facts, residual
from eastgate.ir.symbolic.simplify import both, either, negation, straightened
from eastgate.ir.symbolic.stages import is_answer

TWO_LINES = 120
"""Characters of a condition that a person reads in one glance."""
_LEAST = 40  # characters of alternatives beside other requirements
USUAL_FACTS = Facts(USUAL)
"""What is known of usual requests."""
VALID_TOKEN = Is(Attribute(AttributeKind.VALID_TOKEN), Present())
"""That a request has a token with an issuer and a subject, which rules ask for by two claims. Only for people."""

_PRINCIPAL = {"iss", "sub"}
_HTTP = Is(APPLICATION, OneOf(frozenset({"http"})))
_BYTES = Is(APPLICATION, OneOf(frozenset({"bytes"})))
_ENDS = (
    (SOURCE_NAMESPACE, SOURCE_LABELS, PACKET_SOURCE),
    (DESTINATION_NAMESPACE, DESTINATION_LABELS, DESTINATION_ADDRESS),
)
_NOUNS = {
    SOURCE_WORKLOAD: "pod",
    PACKET_SOURCE: "address",
    DESTINATION_ADDRESS: "address",
    DESTINATION_DOMAIN: "domain",
    HOST: "host",
    PORT: "port",
    PORT_NAME: "port",
}
"""The words of attributes whose names policies do not use."""
_NEAR = {"itself": "the pod itself", "node": "its node"}


def usual(predicate: Predicate) -> Predicate:
    """Return the part of a condition that is about usual requests; NEVER where it is about others only."""
    return residual(predicate, USUAL_FACTS)


def condition_text(predicate: Predicate, *, exact: bool = False, most: int | None = TWO_LINES) -> str:
    """Render a condition in at most `most` characters, except for its last words.

    `exact`: all requests, not only usual ones, at any length.
    """
    if exact:
        return _text(predicate)
    shown = usual(predicate)
    shown = readable(predicate if shown == NEVER else shown)
    text = _text(shown)
    return text if most is None or len(text) <= most else _cut(shown, most)


def readable(predicate: Predicate) -> Predicate:
    """Return a condition without negations of negations, and with valid tokens by their name."""
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
    """Return the parts with one about a token in the place of two about its claims."""
    claims = [index for index, part in enumerate(asked) if some_claim(part) in _PRINCIPAL]
    if {some_claim(asked[index]) for index in claims} != _PRINCIPAL:
        return parts
    rest = [part for index, part in enumerate(parts) if index not in claims]
    return [*rest[: claims[0]], token, *rest[claims[0] :]]


def some_claim(part: Predicate) -> str | None:
    """Return the claim that a part asks for, if any value will do."""
    match part:
        case Is(attribute, Present()) if attribute.kind is AttributeKind.CLAIM:
            return attribute.key
        case Computed(pattern=(attribute, ".+")) if attribute.kind is AttributeKind.CLAIM:
            return attribute.key
        case _:
            return None


def _cut(predicate: Predicate, most: int) -> str:
    """Render as many alternatives, or as many requirements, as fit, and count the others; one more may stay."""
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
        last = _cut(left[0], max(most - len(text), _LEAST))
        return f"{text} and ({last})" if text else last
    return f"{text or _cut(left.pop(0), most)} {word} {len(left)} more"


def _text(predicate: Predicate) -> str:
    if predicate == ALWAYS:
        return "anything"
    if isinstance(predicate, Or) and not _is_path(predicate):
        return _alternatives(predicate.parts)
    return " and ".join(_texts(predicate))


def _texts(predicate: Predicate) -> list[str]:
    """Render requirements: requests, peers and ports by one text each, and each of the others."""
    parts = list(conjuncts(predicate))
    if any(attribute.needs_http for part in parts for attribute in mentions(part)):
        parts = [part for part in parts if part != _HTTP]  # what else it asks for says so
    texts = [*_requests(parts), *_peers(parts), *_ports(parts)]  # each takes its parts out of the list
    return [*texts, *map(_part_text, parts)]


def _alternatives(parts: Sequence[Predicate]) -> str:
    """Render alternatives. Pods that differ in their labels alone are named once."""
    listed = [part for part in parts if isinstance(part, Is) and isinstance(part.matcher, Labelled)]
    pods = {part.attribute for part in listed} & {SOURCE_LABELS, DESTINATION_LABELS}
    if len(listed) == len(parts) > 1 and len(pods) == 1 and all(part.attribute in pods for part in listed):
        selectors = (part.matcher.selector for part in listed if isinstance(part.matcher, Labelled))
        return f"pods with {' or '.join(sorted(map(selector_text, selectors)))}"
    is_compound = any(len(_texts(part)) > 1 or any(isinstance(each, Not) for each in conjuncts(part)) for part in parts)
    joint = ", or " if is_compound else " or "
    return joint.join(map(_text, parts)) or "never"


def _take(parts: list[Predicate], chosen: Callable[[Predicate], bool]) -> list[Predicate]:
    """Remove the parts that are chosen from a list, and return them."""
    taken = [part for part in parts if chosen(part)]
    parts[:] = [part for part in parts if part not in taken]
    return taken


def _take_about(parts: list[Predicate], attribute: Attribute) -> list[Predicate]:
    """Remove the atoms of one attribute, also negated, from a list, and return them."""
    return _take(parts, lambda part: _is_about(part, attribute))


# HTTP


def _requests(parts: list[Predicate]) -> list[str]:
    """Render methods and paths: `GET /cart* except /cart/admin`."""
    method = _take(parts, lambda part: is_list(part, METHOD))
    paths = _take(parts, _is_path)
    words = [" and ".join(map(values_text, some)) for some in (method, paths) if some]
    excepted = [part.part for part in _take(parts, _is_exception) if isinstance(part, Not)]
    if excepted:
        only_paths = all(METHOD not in mentions(part) for part in excepted)
        words += [] if words else ["paths" if only_paths else "requests"]
        words.append(f"except {(', ' if only_paths else ' and ').join(map(_text, excepted))}")
    return [" ".join(words)] if words else []


def _is_exception(part: Predicate) -> bool:
    """Return whether a part excludes requests by methods and paths, and by nothing else."""
    if not isinstance(part, Not):
        return False
    excluded = [each for each in conjuncts(part.part) if each != _HTTP]
    return any(map(_is_path, excluded)) and all(is_list(each, METHOD) or _is_path(each) for each in excluded)


def is_list(part: Predicate, attribute: Attribute) -> bool:
    """Return whether a part is a list of values of one attribute."""
    return isinstance(part, Is) and part.attribute == attribute and isinstance(part.matcher, OneOf)


def _is_path(part: Predicate) -> bool:
    if isinstance(part, Or):
        return bool(part.parts) and all(_is_path(option) for option in part.parts)
    if not isinstance(part, Is) or part.attribute.kind is not AttributeKind.PATH:
        return False
    return isinstance(part.matcher, OneOf | Prefix | Suffix)


def values_text(part: Predicate) -> str:
    """Render the values of a list, or of alternatives that are lists."""
    if isinstance(part, Or):
        return ", ".join(values_text(option) for option in part.parts)
    assert isinstance(part, Is)  # noqa: S101 - callers have checked it
    if isinstance(part.matcher, OneOf):
        return ",".join(sorted(map(str, part.matcher.values)))
    return str(part.matcher)


# Network policies


def selector_text(selector: Selector) -> str:
    """Render a selector as `kubectl -l` takes it."""
    equal = [f"{key}={value}" for key, value in selector.equalities]
    return ",".join([*equal, *sorted(map(str, selector.filters))])


def _peers(parts: list[Predicate]) -> list[str]:
    """Render the pods, namespaces and addresses at either end: `pods with app=a in data`."""
    texts: list[str] = []
    for namespaces, labels, address in _ENDS:
        where = _namespaces(_take_about(parts, namespaces))
        pods = _pods(_take_about(parts, labels))
        if pods or where:
            in_namespace = where if where is None or where.startswith("namespaces") or pods else f"pods in {where}"
            texts.append(f"{pods} in {where}" if pods and where else pods or in_namespace or "")
        texts += _networks(_take_about(parts, address))
    return texts


def _is_about(part: Predicate, attribute: Attribute) -> bool:
    atom = part.part if isinstance(part, Not) else part
    return isinstance(atom, Is) and atom.attribute == attribute


def _split(parts: Iterable[Predicate]) -> tuple[list[Is], list[Is]]:
    """Return the atoms that must hold, and those that must not."""
    held, denied = [], []
    for part in parts:
        if isinstance(part, Is):
            held.append(part)
        elif isinstance(part, Not) and isinstance(part.part, Is):
            denied.append(part.part)
    return held, denied


def _pods(parts: Sequence[Predicate]) -> str:
    held, denied = ([_labels_text(atom) for atom in atoms] for atoms in _split(parts))
    held = [text for text in held if text]
    if not parts:
        return ""
    words = f"pods with {' and '.join(held)}" if held else "pods"
    return f"{words} except {' and '.join(denied)}" if denied else words


def _labels_text(atom: Is) -> str:
    match atom.matcher:
        case Labelled(selector):
            return selector_text(selector)
        case OneOf(values):
            each = (",".join(f"{key}={value}" for key, value in labels_of(str(text)).items()) for text in values)
            return " or ".join(sorted(text or "no labels" for text in each))
        case Present():
            return "some labels"
        case _:
            return str(atom.matcher)


def _namespaces(parts: Sequence[Predicate]) -> str | None:
    held, denied = _split(parts)
    texts = [_namespace(atom, excepted=False) for atom in held]
    texts += [_namespace(atom, excepted=True) for atom in denied]
    return " and ".join(texts) or None


def _namespace(atom: Is, *, excepted: bool) -> str:
    if not isinstance(atom.matcher, Labelled):
        return f"namespaces {'without' if excepted else 'with'} {_labels_text(atom)}"
    selector = atom.matcher.selector
    if selector == Selector.of():
        return "no namespace" if excepted else "any namespace"
    name = dict(selector.equalities).get(NAME_LABEL)
    if name is not None and len(selector.keys) == 1:
        return f"namespaces except {name}" if excepted else name
    listed = next(iter(selector.expressions), None)
    if len(selector.keys) == 1 and listed is not None and listed.key == NAME_LABEL and listed.values:
        is_except = excepted != (listed.operator is Operator.NOT_IN)
        names = ", ".join(sorted(listed.values))
        return f"namespaces except {names}" if is_except else f"namespaces {names}"
    return f"namespaces {'without' if excepted else 'with'} {selector_text(selector)}"


def _networks(parts: Sequence[Predicate]) -> list[str]:
    held, denied = _split(parts)
    if not parts or not all(isinstance(atom.matcher, InNetwork) for atom in (*held, *denied)):
        return [_part_text(part) for part in parts]
    inside = f"addresses in {' and '.join(map(_network_text, held))}" if held else "addresses"
    return [f"{inside} except {', '.join(map(_network_text, denied))}" if denied else inside]


def _network_text(atom: Is) -> str:
    assert isinstance(atom.matcher, InNetwork)  # noqa: S101 - callers have checked it
    return ", ".join(map(str, atom.matcher.networks))


def _ports(parts: list[Predicate]) -> list[str]:
    """Render ports with their transport, which is TCP unless the words say otherwise: `port 53/UDP`."""
    transports = _take(parts, lambda part: is_list(part, TRANSPORT))
    numbers = _take(parts, _is_port)
    transport = " and ".join(map(values_text, transports))
    suffix = "" if transport in ("", "TCP") else f"/{transport}"
    if not numbers:
        return [f"any port{suffix or '/TCP'}"] if transports else []
    return [f"port {' and '.join(map(_port_text, numbers))}{suffix}"]


def _is_port(part: Predicate) -> bool:
    if isinstance(part, Or):
        return bool(part.parts) and all(_is_port(option) for option in part.parts)
    return isinstance(part, Is) and part.attribute in (PORT, PORT_NAME) and isinstance(part.matcher, OneOf | Between)


def _port_text(part: Predicate) -> str:
    if isinstance(part, Or):
        return ", ".join(map(_port_text, part.parts))
    assert isinstance(part, Is)  # noqa: S101 - callers have checked it
    if isinstance(part.matcher, OneOf):
        return ", ".join(map(str, sorted(part.matcher.values, key=lambda port: (isinstance(port, str), port))))
    return str(part.matcher)


def actual_text(values: Mapping[Attribute, Known | Unknown], asked: Collection[Attribute]) -> str:
    """Render what a connection has of the attributes that network policies ask for."""
    texts: list[str] = []
    for end, (namespace, labels, address) in zip(("the caller", "the destination"), _ENDS, strict=True):
        if namespace in asked or labels in asked:
            pod = values.get(SOURCE_WORKLOAD) if labels == SOURCE_LABELS else None
            texts.append(f"{end} is {_pod_text(values.get(labels), values.get(namespace), pod)}")
        elif address in asked:
            texts.append(f"the address of {end} is {values.get(address) or 'unknown'}")
    if not {PORT, PORT_NAME, TRANSPORT}.isdisjoint(asked):
        transport, name = values.get(TRANSPORT), values.get(PORT_NAME)
        suffix = "" if transport in (None, "TCP", UNKNOWN) else f"/{transport}"
        named = f" ({name})" if PORT_NAME in asked and isinstance(name, str) else ""
        texts.append(f"the port is {values.get(PORT) or 'unknown'}{suffix}{named}")
    return "; ".join(texts) or "it does not match"


def _pod_text(labels: Known | Unknown, namespace: Known | Unknown, pod: Known | Unknown) -> str:
    if not isinstance(labels, str) or not isinstance(namespace, str):
        return "no pod" if not isinstance(pod, str) else f"{pod}, a pod in the network of its node (hostNetwork)"
    home = labels_of(namespace).get(NAME_LABEL)
    own = ",".join(f"{key}={value}" for key, value in sorted(labels_of(labels).items()))
    return f"a pod with {own or 'no labels'}" + (f" in {home}" if home is not None else "")


# All else


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
