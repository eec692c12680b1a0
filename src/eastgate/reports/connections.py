"""Connections in the words of network policies: the pods and addresses at both ends, and the ports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from eastgate.cluster import NAME_LABEL
from eastgate.ir import (
    Between,
    InNetwork,
    Is,
    Known,
    Labelled,
    Not,
    OneOf,
    Or,
    Predicate,
    Present,
    labels_of,
)
from eastgate.ir.attributes import (
    DESTINATION_ADDRESS,
    DESTINATION_LABELS,
    DESTINATION_NAMESPACE,
    PACKET_SOURCE,
    PORT,
    PORT_NAME,
    SOURCE_LABELS,
    SOURCE_NAMESPACE,
    SOURCE_WORKLOAD,
    TRANSPORT,
    UNKNOWN,
    Attribute,
    Unknown,
)
from eastgate.ir.labels import Operator, Selector

_ENDS = (
    (SOURCE_NAMESPACE, SOURCE_LABELS, PACKET_SOURCE),
    (DESTINATION_NAMESPACE, DESTINATION_LABELS, DESTINATION_ADDRESS),
)


def take(parts: list[Predicate], chosen: Callable[[Predicate], bool]) -> list[Predicate]:
    """Remove the chosen parts from a list, and return them."""
    taken = [part for part in parts if chosen(part)]
    parts[:] = [part for part in parts if part not in taken]
    return taken


def _take_about(parts: list[Predicate], attribute: Attribute) -> list[Predicate]:
    """Remove the atoms of one attribute from a list, including negated ones, and return them."""
    return take(parts, lambda part: _is_about(part, attribute))


def is_list(part: Predicate, attribute: Attribute) -> bool:
    """Return whether a part is a list of values of one attribute."""
    return isinstance(part, Is) and part.attribute == attribute and isinstance(part.matcher, OneOf)


def values_text(part: Predicate) -> str:
    """Render the values of a list, or of alternatives that are lists."""
    if isinstance(part, Or):
        return ", ".join(values_text(option) for option in part.parts)
    assert isinstance(part, Is)  # noqa: S101 - callers have checked it
    if isinstance(part.matcher, OneOf):
        return ",".join(sorted(map(str, part.matcher.values)))
    return str(part.matcher)


def selector_text(selector: Selector) -> str:
    """Render a selector as `kubectl -l` takes it."""
    equal = [f"{key}={value}" for key, value in selector.equalities]
    return ",".join([*equal, *sorted(map(str, selector.filters))])


def peers(parts: list[Predicate], render: Callable[[Predicate], str]) -> list[str]:
    """Render the pods, namespaces and addresses at both ends, such as `pods with app=a in data`.

    `render` is used for other parts.
    """
    texts: list[str] = []
    for namespaces, labels, address in _ENDS:
        where = _namespaces(_take_about(parts, namespaces))
        pods = _pods(_take_about(parts, labels))
        if pods or where:
            in_namespace = where if where is None or where.startswith("namespaces") or pods else f"pods in {where}"
            texts.append(f"{pods} in {where}" if pods and where else pods or in_namespace or "")
        texts += _networks(_take_about(parts, address), render)
    return texts


def _is_about(part: Predicate, attribute: Attribute) -> bool:
    atom = part.part if isinstance(part, Not) else part
    return isinstance(atom, Is) and atom.attribute == attribute


def _split(parts: Iterable[Predicate]) -> tuple[list[Is], list[Is]]:
    """Return the atoms that must hold, and the atoms that must not hold."""
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


def _networks(parts: Sequence[Predicate], render: Callable[[Predicate], str]) -> list[str]:
    held, denied = _split(parts)
    if not parts or not all(isinstance(atom.matcher, InNetwork) for atom in (*held, *denied)):
        return [render(part) for part in parts]
    inside = f"addresses in {' and '.join(map(_network_text, held))}" if held else "addresses"
    return [f"{inside} except {', '.join(map(_network_text, denied))}" if denied else inside]


def _network_text(atom: Is) -> str:
    assert isinstance(atom.matcher, InNetwork)  # noqa: S101 - callers have checked it
    return ", ".join(map(str, atom.matcher.networks))


def ports(parts: list[Predicate]) -> list[str]:
    """Render ports with their transport: `port 53/UDP`. TCP is not printed."""
    transports = take(parts, lambda part: is_list(part, TRANSPORT))
    numbers = take(parts, _is_port)
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
    """Render the values of a connection for the attributes that network policies ask for."""
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
