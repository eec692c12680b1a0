"""The enforcer of each policy at a point: the proxy of a pod, a mesh with native policies, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from eastgate import dialects
from eastgate.basics.records import dataclass
from eastgate.cluster import World
from eastgate.cluster.points import Direction, NetworkEnd, Point
from eastgate.cluster.proxies import GATEWAY_CLASS
from eastgate.cluster.targets import GatewayNamed
from eastgate.dialects import Policy, dialect_of, registered
from eastgate.dialects.base import Condition
from eastgate.engine.engine import Engine
from eastgate.ir import Doubtful, Known, Layer, PolicyRef, ProxyReading
from eastgate.ir.attributes import SOURCE_WORKLOAD, Attribute
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.document import content_of
from eastgate.settings import Settings, Sidecars

_MAX_NAMES = 5


@dataclass(frozen=True, slots=True)
class PolicyEnforcement:
    """The enforcement of some policies at a point: by a proxy or a mesh, or (`by` is None) by nothing, with the reason.

    - If not `certain`: the policies may be enforced there by `by`, or not at all. One of the `choices` of the `setting`
      decides which.
    - `ports`: the ports in doubt; empty for all ports.
    - Without `policies`: about a calling pod, which has an identity only with `by`.
    - `applies` is False if the policies select a pod to which they cannot apply.
    """

    at: str
    policies: tuple[PolicyRef, ...]
    by: str | None
    why: str
    certain: bool = True
    ports: tuple[int, ...] = ()
    setting: str = "sidecars"
    choices: tuple[str, ...] = ()
    applies: bool = True

    @classmethod
    def of(cls, at: str, reading: ProxyReading, policies: tuple[PolicyRef, ...]) -> PolicyEnforcement:
        """Return the part of a proxy reading that is about these policies at a place."""
        return cls(
            at, policies, reading.by, reading.why, reading.certain, reading.ports, reading.setting, reading.choices
        )

    def to_json(self) -> dict[str, object]:
        """Return the enforcement as plain data. `enforced` is null if it is not certain."""
        return {
            "at": self.at,
            "policies": [str(ref) for ref in self.policies],
            "enforced": (self.by is not None) if self.certain else None,
            "by": self.by,
            "reason": self.why,
            **({"setting": self.setting, "choices": list(self.choices)} if self.choices else {}),
        }


class Enforcers:
    """Finds the enforcers of policies, and the status of policies.

    It considers the proxies of pods, and native policies that the controller wrote.
    """

    def __init__(
        self,
        engine: Engine[Policy],
        world: World,
        settings: Settings,
        document_of: Callable[[PolicyRef], Document | None],
    ) -> None:
        self._engine = engine
        self._world = world
        self._settings = settings
        self._document_of = document_of

    def at(self, point: Point) -> Iterator[PolicyEnforcement]:
        """Yield the enforcement of policies at a point, if a dialect or the class of a Gateway determines it."""
        if isinstance(point, GatewayNamed):
            yield from self._at_gateway(point)
            return
        if isinstance(point, str):
            yield from self.beside_network(point, Direction)
        layers = self._engine.program(point).layers
        readings = dict.fromkeys(
            reading
            for layer in layers
            for chain in layer.chains
            for reading in chain.readings
            if isinstance(reading, ProxyReading)
        )
        unenforced = {ref for reading in readings if reading.by is None for ref in reading.policies}
        where = f"pod {point}" if isinstance(point, str) else str(point)
        for reading in readings:
            left = list(reading.policies)
            for ref in reading.policies if reading.by is None else ():
                writing = [each for each in self._standing_for(ref, point) if each.ref not in unenforced]
                if writing:
                    left.remove(ref)
                    mesh = dialect_of(writing[0]).name
                    names = _list_names([str(each.ref) for each in writing])
                    yield PolicyEnforcement(where, (ref,), mesh, f"the controller wrote {names} for it")
            if left:
                yield PolicyEnforcement.of(where, reading, tuple(left))

    def conditions(self, points: Iterable[Point]) -> Iterator[tuple[str, Condition]]:
        """Yield the conditions that the policies at some points would show in their status."""
        beside = self._engine.policies
        for policy in (each.policy for point in points for each in self._engine.attached(point)):
            for condition in dialects.conditions(policy, beside, self._settings, self._world):
                yield str(policy.ref), condition

    def beside_network(self, key: str, directions: Iterable[Direction]) -> Iterator[PolicyEnforcement]:
        """Yield the network policies that select a pod in its node's network, to which they cannot apply."""
        workload = self._world.workloads.get(key)
        if workload is None or not workload.host_network or not self._engine.has_network_policies:
            return
        attached = (each for direction in directions for each in self._engine.attached(NetworkEnd(key, direction)))
        refs = tuple(sorted({each.policy.ref for each in attached if not each.policy.audit}))
        if refs:
            why = "it uses the node's network (hostNetwork: true)"
            yield PolicyEnforcement(f"pod {key}", refs, None, why, setting="networkPolicies", applies=False)

    def _at_gateway(self, point: GatewayNamed) -> Iterator[PolicyEnforcement]:
        gateway = self._world.gateways.get(f"{point.namespace}/{point.name}")
        refs = tuple(sorted({each.policy.ref for each in self._engine.attached(point) if not each.policy.audit}))
        if self._settings.sidecars is Sidecars.ASSUMED or gateway is None or not refs:
            return
        where = f"Gateway {gateway.namespace}/{gateway.name}"
        if gateway.gateway_class == GATEWAY_CLASS:
            yield PolicyEnforcement(where, refs, "its eastgate proxies", f"its class is {GATEWAY_CLASS}")
        else:
            ours = tuple(ref for ref in refs if (ref.group, ref.kind) in registered().served_kinds)
            by = f"the controller of GatewayClass {gateway.gateway_class}"
            if ours:
                yield PolicyEnforcement(where, ours, by, "its proxies are not Eastgate's", certain=False)

    def _standing_for(self, ref: PolicyRef, point: Point) -> list[Policy]:
        """Return the policies at a point that the controller wrote for another policy, which owns them."""
        uid = _metadata(self._document_of(ref)).get("uid")
        if not uid:
            return []
        attached = {each.policy.ref: each.policy for each in self._engine.attached(point)}
        return [policy for other, policy in attached.items() if uid in _owners(self._document_of(other))]


def _metadata(document: Document | None) -> Mapping[str, object]:
    content = content_of(document) if document is not None else None
    metadata = content.get("metadata") if isinstance(content, Mapping) else None
    return metadata if isinstance(metadata, Mapping) else {}


def _owners(document: Document | None) -> list[object]:
    owners = _metadata(document).get("ownerReferences")
    return [owner.get("uid") for owner in owners if isinstance(owner, Mapping)] if isinstance(owners, list) else []


def caller_doubts(layers: Iterable[Layer], values: Mapping[Attribute, Known]) -> Iterator[PolicyEnforcement]:
    """Yield the doubt about the calling pod of a request: it may have no proxy to prove its identity."""
    for derivation in dict.fromkeys(each for layer in layers for each in layer.derivations):
        other = derivation.otherwise(values) if isinstance(derivation, Doubtful) else None
        if other is not None:
            yield PolicyEnforcement.of(f"pod {values.get(SOURCE_WORKLOAD)}", other[1], ())


def unenforced_text(enforcement: Sequence[PolicyEnforcement]) -> str | None:
    """Return a sentence about the policies that nothing enforces and those that may not be enforced, or None.

    `doubt_lines` handles the doubts that a setting can end.
    """
    places: dict[tuple[tuple[PolicyRef, ...], str | None, str, bool], list[str]] = {}
    for each in (each for each in enforcement if each.applies and not each.choices):
        if each.by is None or not each.certain:
            places.setdefault((each.policies, each.by, each.why, each.certain), []).append(each.at)
    parts = list(inapplicable_lines(enforcement))
    for (policies, by, why, certain), ats in places.items():
        names, where = _list_names([str(ref) for ref in policies]), _list_names(ats)
        if certain:
            parts.append(f"nothing enforces {names} at {where}: {why} (NotEnforced)")
        else:
            parts.append(f"it is not certain that {by} enforces {names} at {where}: {why}")
    return "; ".join(parts) or None


def inapplicable_lines(enforcement: Iterable[PolicyEnforcement]) -> Iterator[str]:
    """Yield a sentence about each pod that policies select, but to which they cannot apply."""
    for each in enforcement:
        if not each.applies:
            verb = "does" if len(each.policies) == 1 else "do"
            yield f"{_list_names([str(ref) for ref in each.policies])} {verb} not apply to {each.at}: {each.why}"


def doubt_lines(enforcement: Sequence[PolicyEnforcement]) -> Iterator[str]:
    """Yield two lines about each doubt that a setting would end, with the policies that need a proxy."""
    places: dict[tuple[tuple[PolicyRef, ...], str], list[str]] = {}
    for each in enforcement:
        if each.choices:
            decides = f"--set {each.setting}={'|'.join(each.choices)}"
            places.setdefault((each.policies, decides), []).append(each.at)
    for (policies, decides), ats in places.items():
        names = _list_names([str(ref) for ref in policies])
        then = f"nothing enforces {names}" if policies else "the caller has no identity"
        yield f"no manifest says whether {_list_names(ats)} has a proxy: ALLOW needs both possibilities"
        yield f"without a proxy, {then}; to state which: {decides}"


def _list_names(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
