"""Finds the two ends of a logged connection in the manifests: by names, by addresses, by certificates.

Manifests seldom have the addresses of pods, and pods have other names than their controllers. So each end is searched
in every way that the line offers; the most reliable way comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from eastgate.authority.decisions import Decision
from eastgate.authority.questions import NOT_DECLARED, QuestionError
from eastgate.basics.diagnostics import snippet
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.cluster import World, account_of
from eastgate.cluster.ends import (
    ANONYMOUS,
    UNKNOWN_CALLER,
    Address,
    Destination,
    Gateway,
    Pod,
    Service,
    ServiceAccount,
    Source,
    SpiffeId,
)
from eastgate.cluster.unread import Handling
from eastgate.control.authorizer.forwarded import identity_in
from eastgate.control.authorizer.locating import GatewaysByHost
from eastgate.dialects.logs import LoggedDecision, LoggedEnd
from eastgate.ir import Origin
from eastgate.ir.addresses import parse_address
from eastgate.reports.explain import explain
from eastgate.settings import Settings

# A logged decision: the content of the line, its comparison with the present manifests, and the explanation.


_GREEN, _RED, _YELLOW, _RESET = "\033[1;32m", "\033[1;31m", "\033[1;33m", "\033[0m"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A logged decision compared with the present manifests. `holds` is None if the log has too little data.

    `is_of_today` is False if the manifests were not asked; the words give the reason.
    """

    holds: bool | None
    words: str
    is_of_today: bool = True


def not_asked(words: str) -> Comparison:
    """Return the placeholder of a comparison if no policy was asked."""
    return Comparison(None, words, is_of_today=False)


def compare(
    allowed: bool, decision: Decision, *, is_same: bool, unknown: Iterable[str] = (), gone: str = ""
) -> Comparison:
    """Compare the verdict of a log with a present decision.

    `is_same`: the rule that decided then also decides now. `unknown` are deciding attributes that the log does not
    have; `gone` describes the removal of the policy that decided then.
    """
    if is_same and allowed == decision.allowed:
        return Comparison(True, "the manifests still say so")
    if unknown := sorted(unknown):
        return Comparison(None, f"it depends on attributes that are not in the log: {', '.join(unknown)}")
    if allowed != decision.allowed:
        was, now = ("allowed", "denied") if allowed else ("denied", "allowed")
        return Comparison(False, f"changed since: it was {was}, and is {now} by the manifests of today{gone}")
    return Comparison(True, f"changed since: the verdict is the same, but another rule decides today{gone}")


def assumed_in(decision: Decision) -> set[str]:
    """Return the attributes that a denial assumes because the question leaves them out."""
    if decision.allowed:
        return set()
    return {str(attribute) for layer in decision.trace(nearest=0).layers for attribute, _ in layer.assumed}


@dataclass(frozen=True, slots=True)
class Explanation:
    """A logged decision with its explanation.

    `head` names the place and the decider, `line` is the logged line as data. Without a `decision`, the manifests
    cannot be asked the same question. `origins` are rules that the log names (`is_named`) or may mean, unless the
    decision shows them itself.
    """

    allowed: bool
    head: str
    line: Mapping[str, object]
    comparison: Comparison
    decision: Decision | None = None
    notes: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()
    is_named: bool = False

    def text(self, *, color: bool = False, unread: Handling = Handling.WARN) -> str:
        """Render the logged decision, its comparison with the present manifests, and the explanation."""
        return "\n".join(self._lines(color, unread))

    def _lines(self, color: bool, unread: Handling) -> Iterator[str]:
        tone, verdict = (_GREEN, "ALLOWED") if self.allowed else (_RED, "DENIED")
        yield f"the log: {f'{tone}{verdict}{_RESET}' if color else verdict}{printable(self.head)}"
        yield from (printable(f"  {note}") for note in self.notes)
        words = printable(self.comparison.words)
        words = f"{_YELLOW}{words}{_RESET}" if color and self.comparison.holds is False else words
        yield f"  today: {words}" if self.comparison.is_of_today else f"  {words}"
        if self.decision is not None:
            yield ""
            yield explain(self.decision, color=color, unread=unread)
        for origin in self.origins:
            yield ""
            yield printable(f"the log {'names' if self.is_named else 'may mean'} {origin}:")
            yield f"  --> {origin.span}"
            yield from _shown(origin, color)

    def to_json(self, *, unread: Handling = Handling.WARN) -> dict[str, object]:
        """Return the explanation as plain data."""
        decision, comparison = self.decision, self.comparison
        return {
            "line": dict(self.line),
            "holds": comparison.holds,
            "standing": comparison.words,
            "question": str(decision.question) if decision is not None else None,
            "today": decision.to_json() if decision is not None else None,
            "explanation": explain(decision, unread=unread) if decision is not None else comparison.words,
        }


def _shown(origin: Origin, color: bool) -> Iterator[str]:
    """Yield the text of a rule, part by part."""
    parts = dict.fromkeys((part, str(attribute)) for attribute, part in origin.parts)
    for part, note in parts:
        yield from snippet(part, note=note, color=color)
    if not parts and origin.span is not None:
        yield from snippet(origin.span, color=color)


_GENERATED_NAME_PARTS = 2  # parts of a pod's name that controllers generate


@dataclass(frozen=True, slots=True)
class GivenEnds:
    """The ends from `--from` and `--to`, which override those of the line."""

    source: Source | None = None
    to: Destination | None = None


@dataclass(frozen=True, slots=True)
class LocatedCaller:
    """The caller. A caller without mTLS has no identity."""

    source: Source
    address: str | None = None
    plaintext: bool = False


@dataclass(frozen=True, slots=True)
class LocatedDestination:
    """The destination and its port."""

    to: Destination
    port: int | None


def find_caller(logged: LoggedDecision, given: GivenEnds, world: World, settings: Settings) -> LocatedCaller:
    """Return the caller; an anonymous caller if the line and the manifests do not identify one."""
    end = logged.caller
    address = _address(end.address)
    if given.source is not None:
        return LocatedCaller(given.source, address)
    identity = end.identity or _verified(end)
    if identity is not None:
        return LocatedCaller(_named(identity, settings), address)
    pod = _pod_of(end, world)
    if pod is not None:
        return LocatedCaller(pod, address, logged.plaintext)
    if not logged.plaintext:
        return LocatedCaller(UNKNOWN_CALLER, address)
    return LocatedCaller(Address(address) if address is not None else ANONYMOUS)


def _verified(end: LoggedEnd) -> str | None:
    return (identity_in(end.certificates) or None) if end.certificates is not None else None


def _named(identity: str, settings: Settings) -> Source:
    domain, *account = account_of(identity) or (None,)
    return ServiceAccount(account[0], account[1]) if domain == settings.trust_domain else SpiffeId(identity)


def find_called(logged: LoggedDecision, given: GivenEnds, world: World) -> LocatedDestination | None:
    """Return the destination; None if the line does not name it, or no manifest declares it."""
    end = logged.called
    if given.to is not None:
        return LocatedDestination(given.to, _port_at(given.to, end, world))
    pod = _pod_of(end, world) if end.service_port is None or end.port is not None else None
    if pod is not None:
        return LocatedDestination(pod, end.port)
    if end.is_gateway:
        gateways = GatewaysByHost().find(logged.host, world, None)
        return LocatedDestination(gateways[0], None) if len(gateways) == 1 else None
    for host in filter(None, (end.host, logged.host)):
        service = _service_at(host, world)
        if service is not None:
            return LocatedDestination(service, _service_port(service, end, world))
    return None


def _port_at(to: Destination, end: LoggedEnd, world: World) -> int | None:
    """Return the port of a destination from `--to`.

    The proxy of a Gateway may listen on another port than the Gateway.
    """
    if isinstance(to, Service) and to.key in world.services:
        return _service_port(to, end, world)
    if isinstance(to, Gateway) and (gateway := world.gateways.get(to.key)) is not None:
        return end.port if any(listener.port == end.port for listener in gateway.listeners) else None
    return end.port


def require_called(logged: LoggedDecision, given: GivenEnds, world: World) -> LocatedDestination:
    """Return the destination. Raises QuestionError if it cannot be found."""
    called = find_called(logged, given, world)
    if called is None:
        address = f" at {logged.called.address}" if logged.called.address is not None else ""
        message = (
            f"no manifest declares the destination{address}" if address else "the line does not name the destination"
        )
        kind = Gateway.kind if logged.called.is_gateway else Pod.kind
        raise QuestionError(NOT_DECLARED, message, f"name it: --to {kind}:<namespace>/<name>")
    return called


def _address(text: str | None) -> str | None:
    try:
        return str(parse_address(text)) if text is not None else None
    except ValueError:
        return None


def _pod_of(end: LoggedEnd, world: World) -> Pod | None:
    """Return the pod, or the controller of pods, at an end; None if there is none, or more than one."""
    if end.pod is not None:
        namespaces = (end.namespace,) if end.namespace is not None else world.namespaces_in_use()
        pods = {pod for namespace in namespaces for pod in _pods_named(namespace, end.pod, world)}
        if len(pods) == 1:
            return pods.pop()
    address = _address(end.address)
    workload = world.by_ip(address) if address is not None else None
    return Pod(workload.namespace, workload.name) if workload is not None else None


def _pods_named(namespace: str, name: str, world: World) -> Iterator[Pod]:
    """Yield the pod of a name, or its controller: `cart-7d4b9-x2x4z` is a pod of `cart`."""
    parts = name.split("-")
    for count in range(min(_GENERATED_NAME_PARTS + 1, len(parts))):
        candidate = "-".join(parts[: len(parts) - count])
        if world.find_workloads(namespace, candidate):
            yield Pod(namespace, candidate)
            return


def _service_at(host: str, world: World) -> Service | None:
    """Return the Service of a host. The host may leave out the namespace and the domain if it is still unambiguous."""
    name, _, rest = host.partition(":")[0].partition(".")
    namespace = rest.partition(".")[0]
    if namespace:
        return _service_named(f"{namespace}/{name}", world)
    keys = [key for key in world.services if key.partition("/")[2] == name]
    return _service_named(keys[0], world) if len(keys) == 1 else None


def _service_named(key: str, world: World) -> Service | None:
    namespace, _, name = key.partition("/")
    return Service(namespace, name) if key in world.services else None


def _service_port(service: Service, end: LoggedEnd, world: World) -> int | None:
    """Return the port of a Service: the port of the line, or the port that leads to the port of the pod."""
    if end.service_port is not None or end.port is None:
        return end.service_port
    declared = world.services[service.key]
    pods = [world.workloads[key] for key in world.pods_of(service.key)]
    for port in declared.ports:
        if any(end.port in world.target_ports(declared, port.port, pod) for pod in pods):
            return port.port
    return None
