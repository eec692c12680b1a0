"""After any changes, an engine decides by exactly the policies that target a workload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate.cluster import (
    LiveWorld,
    Namespace,
    ObjectId,
    Operator,
    Pod,
    PodsAcross,
    PodsMatching,
    PodsOfService,
    Requirement,
    Selector,
    Service,
    Target,
)
from eastgate.engine.engine import Engine
from eastgate.ir import Attachment, Chain, Deny, Is, Layer, OneOf, Origin, Placement, PolicyRef, Request, Rule
from eastgate.ir.attributes import IDENTITY, PORT


@dataclass(frozen=True, eq=False)
class Policy:
    ref: PolicyRef
    targets: tuple[Target, ...]
    references: tuple[PolicyRef, ...] = ()


namespaces = st.sampled_from(["a", "b"])
labels = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["x", "y"]))
requirement = st.builds(
    Requirement,
    st.just("tier"),
    st.sampled_from(Operator),
    st.frozensets(st.sampled_from(["x", "y"]), min_size=1),
)
selectors = st.builds(Selector.of, labels, st.lists(requirement, max_size=1))
targets: st.SearchStrategy[Target] = (
    st.builds(PodsMatching, namespaces, selectors)
    | st.builds(PodsOfService, namespaces, st.just("web"))
    | st.builds(PodsAcross, st.builds(Selector.of, st.dictionaries(st.just("env"), st.just("prod"))), selectors)
)
refs = st.builds(
    PolicyRef, st.just("P"), namespaces | st.none(), st.sampled_from(["p", "q", "r"]), st.sampled_from("gh")
)
policies = st.builds(
    Policy, refs, st.lists(targets, max_size=3).map(tuple), st.just(()) | st.lists(refs, max_size=2).map(tuple)
)

Doing = Callable[[Engine[Policy]], object]
declared = (
    st.builds(Pod, namespaces, st.sampled_from(["1", "2"]), st.just({"app": "x"}) | labels)
    | st.builds(Service, namespaces, st.just("web"), st.just({"app": "x"}) | labels)
    | st.builds(Namespace, namespaces, st.dictionaries(st.just("env"), st.sampled_from(["prod", "test"])))
)


def _world(engine: Engine[Policy]) -> LiveWorld:
    assert isinstance(engine.world, LiveWorld)
    return engine.world


def _declare(found: Pod | Service | Namespace) -> Doing:
    return lambda engine: _world(engine).put(found)


def _withdraw(gone: ObjectId) -> Doing:
    return lambda engine: _world(engine).remove(gone)


def _put(policy: Policy) -> Doing:
    return lambda engine: engine.put_policy(policy)


def _remove(ref: PolicyRef) -> Doing:
    return lambda engine: engine.remove_policy(ref)


changes: st.SearchStrategy[Doing] = (
    declared.map(_declare) | declared.map(lambda found: _withdraw(found.id)) | policies.map(_put) | refs.map(_remove)
)


def by_name(attached: Sequence[Attachment[Policy]], _stances: object) -> list[Layer]:
    """Layers that deny each caller with the name of an attached policy, so that every decision shows the policies."""
    return [Layer(Placement(None, "workload"), Chain((Deny("deny", tuple(map(_denial, attached))),)))]


def _denial(one: Attachment[Policy]) -> Rule:
    return Rule(Is(IDENTITY, OneOf(frozenset({_name(one)}))), Origin(one.policy.ref, 0))


def _name(one: Attachment[Policy]) -> str:
    return f"{id(one.policy)} {one.service}"


def by_looking_at_all(engine: Engine[Policy], workload: str) -> list[Attachment[Policy]]:
    found = engine.world.workloads[workload]
    attached = {
        Attachment(policy, f"{target.namespace}/{target.service}" if isinstance(target, PodsOfService) else None)
        for policy in engine.policies
        for target in policy.targets
        if engine.world.target_matches(target, found)
    }
    wanted = {ref for one in attached for ref in one.policy.references}
    referred = [Attachment(policy) for policy in engine.policies if policy.ref in wanted]
    return [*sorted(attached, key=_order), *sorted(referred, key=_order)]


def _order(one: Attachment[Policy]) -> tuple[str, ...]:
    ref = one.policy.ref
    return ref.kind, ref.namespace or "", ref.name, ref.group, one.service or ""


@settings(max_examples=400, deadline=None)
@given(st.lists(declared, max_size=6), st.lists(policies, max_size=6), st.lists(changes, max_size=12))
def test_a_changed_engine_decides_by_the_policies_that_are_there_now(
    first: list[Pod | Service | Namespace], start: list[Policy], then: list[Doing]
) -> None:
    engine = Engine(LiveWorld.of(first), start, by_name)
    seen: set[str] = set()
    for change in [lambda _: None, *then]:
        change(engine)
        for workload in engine.world.workloads:
            attached = by_looking_at_all(engine, workload)
            assert list(engine.attached(workload)) == attached
            names = {_name(one) for one in attached}
            seen |= names
            denied = {name for name in seen if not engine.decide(workload, Request({IDENTITY: name, PORT: 1})) & 1}
            assert denied == names
