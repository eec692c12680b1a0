"""The native objects of a policy: the written ones, the omitted ones, and objects that are never changed."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from eastgate import Settings
from eastgate.authority.authority import Authority
from eastgate.convert.native import (
    NativeMesh,
    NativePlan,
    NativeState,
    NativeStepKind,
    NativeWriter,
    Unwritable,
    foresee,
    steps,
    wanted,
)
from eastgate.convert.native.model import MANAGED_BY, SOURCE_UID, is_ours, object_id
from eastgate.reading.kubernetes import ApiError, Connection
from tests.convert.native.clusters import Manifest, read, stored

POD: Manifest = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "cart", "namespace": "shop", "labels": {"app": "cart"}},
    "spec": {"containers": [{"name": "main", "ports": [{"containerPort": 8080}]}]},
}
WEB = {"authorizationSource": {"serviceAccounts": ["web"]}, "networkAttributes": {"ports": [8080]}}
CART = {"matchLabels": {"app": "cart"}}


def policy(name: str, action: str = "ALLOW", selector: Any = CART, **more: Any) -> Manifest:
    metadata = {"name": name, "namespace": "shop", **more.pop("metadata", {})}
    spec = {"targetRefs": [{"kind": "Pod", "selector": selector}], "action": action, "rules": [WEB], **more}
    version = "gateway.networking.x-k8s.io/v1alpha2"
    return {"apiVersion": version, "kind": "AuthorizationPolicy", "metadata": metadata, "spec": spec}


def of_istio(name: str, **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy", "metadata": metadata, "spec": spec}


def plan_of(*manifests: Manifest, mesh: NativeMesh = NativeMesh.ISTIO, **more: Any) -> NativePlan:
    default = "deny" if mesh is NativeMesh.LINKERD else "all-unauthenticated"
    return wanted(read([POD, *manifests], Settings.from_mapping({"linkerdDefaultPolicy": default})), mesh, **more)


def closing_plan_of(*manifests: Manifest, mesh: NativeMesh = NativeMesh.ISTIO) -> NativePlan:
    return plan_of(*manifests, mesh=mesh, unwritable=Unwritable.CLOSE)


def states(plan: NativePlan) -> dict[str, NativeState]:
    return {outcome.source.name: outcome.state for outcome in plan.outcomes}


def uid_of(manifest: Manifest) -> str:
    return str(stored([manifest])[0]["metadata"]["uid"])


def test_labels_and_annotations_of_a_source_mean_nothing_in_the_mesh() -> None:
    source = policy("cart", metadata={"annotations": {"istio.io/dry-run": "true"}, "labels": {"istio.io/rev": "x"}})
    (native,) = plan_of(source).objects
    assert set(native["metadata"]["annotations"]) == {"eastgate.dev/source"}
    assert set(native["metadata"]["labels"]) == {MANAGED_BY, SOURCE_UID}


def test_an_audit_is_a_dry_run() -> None:
    (native,) = plan_of(policy("cart", metadata={"annotations": {"eastgate.dev/mode": "audit"}})).objects
    assert native["metadata"]["annotations"]["istio.io/dry-run"] == "true"


def test_what_stands_for_two_policies_is_owned_by_both() -> None:
    both = policy("network"), policy("application", enforcementLevel="APPLICATION")
    (native,) = plan_of(*both).objects
    owners = {owner["uid"] for owner in native["metadata"]["ownerReferences"]}
    assert owners == {uid_of(source) for source in both}
    servers = plan_of(policy("one"), policy("two"), mesh=NativeMesh.LINKERD).objects
    (server,) = [native for native in servers if native["kind"] == "Server"]
    assert len(server["metadata"]["ownerReferences"]) == 2


def test_a_deny_stands_alone() -> None:
    """Whatever happens to the ALLOW, the DENY does not open the pods."""
    plan = plan_of(policy("allow"), policy("deny", "DENY", rules=[{"networkAttributes": {"ports": [9]}}]))
    specs = [
        native["spec"] for native in plan.objects if "/deny" in native["metadata"]["annotations"]["eastgate.dev/source"]
    ]
    assert sorted((spec["action"], len(spec["rules"])) for spec in specs) == [("ALLOW", 0), ("DENY", 1)]


_UNWRITABLE = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}


def test_a_deny_that_cannot_be_written_closes_what_an_allow_opens() -> None:
    sources = policy("allow", rules=[{}]), policy("deny", "DENY", _UNWRITABLE)
    plan = closing_plan_of(*sources)
    assert states(plan) == {"allow": NativeState.WRITTEN, "deny": NativeState.CLOSED}
    assert not plan.is_wider
    left = plan_of(*sources)
    assert states(left) == {"allow": NativeState.WRITTEN, "deny": NativeState.NOT_WRITTEN}
    assert left.is_wider
    two = [WEB, {**WEB, "authorizationSource": {"serviceAccounts": ["batch"]}}]
    in_linkerd = closing_plan_of(policy("allow", rules=two), policy("deny", "DENY"), mesh=NativeMesh.LINKERD)
    assert in_linkerd.objects == ()
    assert states(in_linkerd) == {"allow": NativeState.CLOSED, "deny": NativeState.CLOSED}
    assert [loss.code.id for outcome in in_linkerd.outcomes for loss in outcome.losses] == ["EG7008", "EG7003"]
    assert not in_linkerd.is_wider


OTHER: Manifest = {**POD, "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}}}
_NOT_WEB = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}
EVIL: Manifest = {
    "apiVersion": "eastgate.dev/v1alpha1",
    "kind": "ClusterAuthorizationPolicy",
    "metadata": {"name": "evil"},
    "spec": {
        "tier": "Admin",
        "priority": 10,
        "action": "DENY",
        "subject": {"namespaceSelector": {}},
        "rules": [{"authorizationSource": {"serviceAccounts": ["evil/*"]}}],
    },
}


@pytest.mark.parametrize("source", [EVIL, policy("not-web", "DENY", _NOT_WEB), policy("broken", surprise=True)])
@pytest.mark.parametrize("mesh", NativeMesh)
def test_nothing_is_closed_that_nobody_asked_to_close(source: Manifest, mesh: NativeMesh) -> None:
    plan = plan_of(OTHER, source, mesh=mesh)
    assert plan.objects == ()
    (outcome,) = plan.outcomes
    assert outcome.losses
    if mesh is NativeMesh.ISTIO:  # Linkerd itself denies unauthorized requests
        assert outcome.state is NativeState.NOT_WRITTEN
        assert any(difference.allowed for difference in outcome.differences)


def _asking(manifest: Manifest, choice: str) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": {"eastgate.dev/native-unwritable": choice}}}


def test_each_policy_chooses_whether_its_pods_are_closed() -> None:
    allow, deny = policy("allow", rules=[{}]), policy("deny", "DENY", _UNWRITABLE)
    closed = plan_of(allow, _asking(deny, "close"))
    assert states(closed) == {"allow": NativeState.WRITTEN, "deny": NativeState.CLOSED}
    left = closing_plan_of(allow, _asking(deny, "leave"))
    assert states(left) == {"allow": NativeState.WRITTEN, "deny": NativeState.NOT_WRITTEN}
    assert states(plan_of(allow, _asking(deny, "shut"))) == states(left)
    in_linkerd = plan_of(policy("allow"), _asking(policy("deny", "DENY"), "close"), mesh=NativeMesh.LINKERD)
    assert in_linkerd.objects == ()


def test_an_outcome_names_the_pods_that_are_closed_without_being_targeted() -> None:
    (outcome,) = closing_plan_of(OTHER, policy("not-web", "DENY", _NOT_WEB)).outcomes
    assert (outcome.state, outcome.also_closed) == (NativeState.CLOSED, ("shop/web",))
    (outcome,) = closing_plan_of(OTHER, policy("broken", surprise=True)).outcomes
    assert (outcome.state, outcome.also_closed) == (NativeState.CLOSED, ())


@pytest.mark.parametrize(
    ("source", "codes", "exactly"),
    [
        (policy("cart"), [], True),
        (policy("not-web", "DENY", _NOT_WEB), ["EG7101"], False),
        (EVIL, ["EG7104"], True),
        (OTHER, None, True),
    ],
    ids=["written", "selector", "accounts", "no policy"],
)
def test_what_becomes_of_a_policy_is_known_before_it_is_stored(
    source: Manifest, codes: list[str] | None, exactly: bool
) -> None:
    live = Authority(read([POD, OTHER, policy("beside")], Settings()), strict=False)
    foreseen = foresee(live, source, NativeMesh.ISTIO)
    assert (foreseen and [loss.code.id for loss in foreseen.losses]) == codes
    assert foreseen is None or foreseen.exactly is exactly


def test_a_policy_with_errors_closes_its_pods() -> None:
    plan = closing_plan_of(policy("broken", surprise=True))
    (native,) = plan.objects
    assert native["spec"] == {"selector": CART, "action": "DENY", "rules": [{}]}
    assert states(plan) == {"broken": NativeState.CLOSED}
    assert plan.outcomes[0].losses
    settings = Settings()
    live = Authority(read([POD, policy("broken", surprise=True)], settings), strict=False)
    assert wanted(live, NativeMesh.ISTIO, unwritable=Unwritable.CLOSE).objects == plan.objects


def test_annotations_of_linkerd_hide_nothing_in_istio() -> None:
    annotated = {**POD, "metadata": {**POD["metadata"], "name": "other", "annotations": {}}}
    annotated["metadata"]["annotations"]["config.linkerd.io/default-inbound-policy"] = "deny"
    sources = policy("allow", rules=[{}]), policy("deny", "DENY", _UNWRITABLE)
    assert states(closing_plan_of(annotated, *sources))["deny"] is NativeState.CLOSED


def test_an_annotation_of_the_namespace_makes_linkerd_deny() -> None:
    annotations = {"config.linkerd.io/default-inbound-policy": "deny"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "annotations": annotations}}
    plan = wanted(read([namespace, POD, policy("cart")], Settings()), NativeMesh.LINKERD)
    assert states(plan) == {"cart": NativeState.WRITTEN}
    assert not plan.is_wider


def test_policies_of_somebody_else_combine_with_ours() -> None:
    wide = of_istio("by-hand", selector=CART, action="ALLOW", rules=[{}])
    plan = closing_plan_of(wide, policy("cart"))
    assert states(plan) == {"cart": NativeState.CLOSED}
    assert [str(ref) for difference in plan.outcomes[0].differences for ref in difference.beside] == [
        "AuthorizationPolicy/shop/by-hand"
    ]
    assert [loss.code.id for loss in plan.outcomes[0].losses] == ["EG7507"]
    narrow = of_istio("by-hand", selector=CART, action="DENY", rules=[{"to": [{"operation": {"ports": ["9"]}}]}])
    assert states(plan_of(narrow, policy("cart"))) == {"cart": NativeState.WRITTEN}


def test_a_name_that_somebody_has_taken_is_left_to_them() -> None:
    (native,) = plan_of(policy("cart")).objects
    squatting = of_istio(native["metadata"]["name"], selector={"matchLabels": {"x": "y"}}, action="DENY", rules=[{}])
    (other,) = plan_of(squatting, policy("cart")).objects
    assert other["metadata"]["name"] != native["metadata"]["name"]
    assert other["spec"] == native["spec"]
    assert plan_of(native, policy("cart")).objects == (native,)  # objects of Eastgate are not foreign


def test_an_admin_policy_that_denies_is_written_in_each_namespace() -> None:
    subject = {"podSelector": CART}
    rules = [{"authorizationSource": {"serviceAccounts": ["sandbox/web"]}}]
    spec = {"tier": "Admin", "priority": 10, "action": "DENY", "subject": subject, "rules": rules}
    metadata = {"name": "no-sandbox"}
    admin = {
        "apiVersion": "eastgate.dev/v1alpha1",
        "kind": "ClusterAuthorizationPolicy",
        "metadata": metadata,
        "spec": spec,
    }
    elsewhere = {**POD, "metadata": {**POD["metadata"], "namespace": "depot"}}
    plan = plan_of(elsewhere, admin)
    assert states(plan) == {"no-sandbox": NativeState.WRITTEN}
    assert [(native["metadata"]["namespace"], native["spec"]["action"]) for native in plan.objects] == [
        ("depot", "DENY"),
        ("shop", "DENY"),
    ]
    first = {**admin, "metadata": {"name": "first"}, "spec": {**spec, "priority": 1, "action": "ALLOW"}}
    assert states(plan_of(elsewhere, admin, first))["no-sandbox"] is not NativeState.WRITTEN


def test_a_policy_without_a_uid_owns_nothing() -> None:
    from eastgate.authority.reading import read_plain

    with pytest.raises(ValueError, match="has no UID"):
        wanted(read_plain([POD, policy("cart")], Settings()), NativeMesh.ISTIO)


@pytest.mark.parametrize(
    ("labels", "owners", "ours"),
    [
        ({MANAGED_BY: "eastgate", SOURCE_UID: "1"}, ["1"], True),
        ({MANAGED_BY: "eastgate", SOURCE_UID: "1"}, ["2"], True),  # another source policy remains
        ({MANAGED_BY: "eastgate", SOURCE_UID: "1"}, ["3"], False),
        ({MANAGED_BY: "eastgate", SOURCE_UID: "1"}, [], False),
        ({MANAGED_BY: "helm", SOURCE_UID: "1"}, ["1"], False),
        ({MANAGED_BY: "eastgate"}, ["1"], False),
        ({}, ["1"], False),
    ],
)
def test_ours_is_what_labels_and_owners_say(labels: dict[str, str], owners: list[str], ours: bool) -> None:
    native = of_istio("x", action="DENY", rules=[{}])
    native["metadata"] |= {"labels": labels, "ownerReferences": [{"uid": uid} for uid in owners]}
    assert is_ours(native, {"1", "2"}) is ours
    planned = steps([native], [], {"1", "2"})
    assert [step.kind for step in planned] == ([NativeStepKind.DELETE] if ours else [])


class _Refusing:
    """A connection to a server without objects that refuses to create objects in one namespace."""

    def __init__(self) -> None:
        self.created: list[str] = []

    async def list(self, *_: Any, **__: Any) -> tuple[list[Any], str]:
        return [], "1"

    async def create(self, _resource: Any, obj: Manifest) -> Manifest:
        if obj["metadata"]["namespace"] == "shop":
            raise ApiError(403, "Forbidden", "no")
        self.created.append("/".join(object_id(obj)[2:]))
        return obj


def test_a_step_that_fails_stops_its_namespace_alone() -> None:
    elsewhere = policy("cart", "DENY")
    elsewhere["metadata"]["namespace"] = "depot"
    plan = plan_of(policy("cart", "DENY"), elsewhere)
    server = _Refusing()
    failures = asyncio.run(NativeWriter(cast("Connection", server)).write(plan))
    assert [failure.step.namespace for failure in failures] == ["shop"]
    assert len(server.created) == 2
    assert all(name.startswith("depot/") for name in server.created)
