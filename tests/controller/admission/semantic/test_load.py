"""The judge under load: the clients that it serves, and the answer to changes after their time has run out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from eastgate.controller.admission.semantic import Judge, ObjectChange
from eastgate.controller.admission.semantic.bench import JudgingCopies
from eastgate.controller.admission.semantic.model import ChangeJudgement
from eastgate.controller.admission.turns import ReviewClient
from eastgate.reports.invariants.objects import InvariantObject, read_invariant
from tests.controller.admission.semantic.heavy import closed, many_rules
from tests.controller.admission.semantic.world import (
    GATEWAY,
    Manifest,
    authority,
    gep,
    invariant,
    judge,
    namespace,
    network,
    policy,
    service,
)
from tests.patience import PATIENCE

ATTACKER, OTHER_USER, OTHER_PEER = (
    ReviewClient("10.0.0.9", "mallory"),
    ReviewClient("10.0.0.9", "jane"),
    ReviewClient("10.0.0.1", "jane"),
)


@pytest.mark.parametrize("rules", [50, 201])
def test_how_many_rules_a_policy_has_hides_no_breach(rules: int) -> None:
    """The rule that breaks the Invariant is the last."""
    judgement = judge(authority(closed()), ObjectChange.of(many_rules("q", rules)), _read(invariant("i")), budget=2.0)
    assert "breaks Invariant/shop/i" in " ".join(judgement.refusals)


def test_how_many_invariants_a_namespace_has_hides_no_breach_of_the_clusters() -> None:
    """An owner of a namespace can add many Invariants, and the Invariant of the cluster comes last."""

    def of_owner(number: int) -> Manifest:
        callers, to = {"serviceAccounts": [f"shop/nobody-{number}"]}, {"pods": {"matchLabels": {"app": "payments"}}}
        return policy("eastgate.dev/v1alpha1", "Invariant", f"m{number}", {"never": {"from": callers, "to": to}})

    stated = _read(*map(of_owner, range(400)), invariant("c", home=None))
    change = ObjectChange.of(gep("p", "web", "sandbox/toy"))
    judgement = judge(authority(gep("p", "web")), change, stated, budget=2.0)
    assert "breaks ClusterInvariant/c" in " ".join(judgement.refusals)


def test_an_invariant_that_was_broken_before_is_found_to_get_worse_among_many_rules() -> None:
    before = authority(closed(), many_rules("q", 3, "cluster.local/ns/sandbox/sa/toy"))
    worse = many_rules("q", 3, "cluster.local/ns/sandbox/sa/toy", "cluster.local/ns/sandbox/sa/*")
    assert judge(
        before, ObjectChange.of(many_rules("q", 2, "cluster.local/ns/sandbox/sa/toy")), _read(invariant("i"))
    ).allowed
    assert not judge(before, ObjectChange.of(worse), _read(invariant("i", includeFuture=True))).allowed


# Changes without time for a judgement


@pytest.mark.parametrize("unproven", ["Warn", "Refuse"])
def test_a_change_without_time_for_a_judgement_is_refused_with_any_on_not_proven(unproven: str) -> None:
    keeping = Judge(authority(closed()), _read(invariant("i", unproven=unproven)))
    judgement = keeping.refuse_unjudged(ObjectChange.of(gep("q", "sandbox/*")))
    assert judgement.refusals == (
        "overloaded: there was no time to find out whether this breaks Invariant/shop/i; try again",
    )
    keeping.close()


def _elsewhere(manifest: Manifest, home: str = "sandbox") -> Manifest:
    return manifest | {"metadata": manifest["metadata"] | {"namespace": home}}


_ROUTE = GATEWAY[1]
_PARENT = {"parentRefs": [{"name": "web", "namespace": "shop"}], "rules": _ROUTE["spec"]["rules"]}
_EGRESS = _elsewhere(network("n"))
_EGRESS["spec"] = {"podSelector": {}, "policyTypes": ["Egress"]}

ABOUT_SHOP = {
    "a policy in shop": gep("q", "sandbox/*"),
    "a Service in shop": service("shop", "payments"),
    "a policy elsewhere": _elsewhere(gep("q", "sandbox/*")),
    "a Service elsewhere": service("sandbox", "toy"),
    "a route elsewhere that goes to a Gateway in shop": _elsewhere(_ROUTE | {"spec": _PARENT}),
    "a route elsewhere": _elsewhere(_ROUTE),
    "what pods elsewhere may accept": _elsewhere(network("n")),
    "what pods elsewhere may connect to": _EGRESS,
    "a policy of the root namespace": _elsewhere(gep("q", "sandbox/*"), "istio-system"),
    "a namespace": namespace("sandbox"),
    "a policy of the cluster": policy(
        "eastgate.dev/v1alpha1", "ClusterAuthorizationPolicy", "c", {"tier": "Admin", "rules": []}, home=None
    ),
}
_NOT_ABOUT = {
    "a policy elsewhere",
    "a Service elsewhere",
    "a route elsewhere",
    "what pods elsewhere may accept",
}


@pytest.mark.parametrize("name", ABOUT_SHOP)
@pytest.mark.parametrize("home", ["shop", None])
def test_a_change_without_invariants_is_not_refused_under_load(name: str, home: str | None) -> None:
    stated = invariant("i", home=home)
    if home is None:
        stated["spec"]["never"]["to"]["namespaces"] = {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}
    keeping = Judge(authority(closed()), _read(stated))
    judgement = keeping.refuse_unjudged(ObjectChange.of(ABOUT_SHOP[name]))
    assert judgement.allowed is (name in _NOT_ABOUT)
    assert judgement.warnings == ("not proven: the controller is overloaded, and had no time to judge this",)
    removed = keeping.refuse_unjudged(ObjectChange.of(ABOUT_SHOP[name], removed=True))
    assert removed.allowed is (name in _NOT_ABOUT)
    keeping.close()


def test_labels_and_references_are_followed() -> None:
    stated = invariant("i", home=None)
    stated["spec"]["never"]["to"]["namespaces"] = {"matchLabels": {"pci": "true"}}
    keeping = Judge(authority(closed()), _read(stated))
    change = ObjectChange.of(gep("q", "sandbox/*"))
    assert keeping.refuse_unjudged(change).allowed
    labelled = namespace("shop")
    labelled["metadata"]["labels"]["pci"] = "true"
    keeping.update([labelled])
    assert not keeping.refuse_unjudged(change).allowed
    clients = policy("policy.linkerd.io/v1alpha1", "MeshTLSAuthentication", "all", {"identities": ["*"]}, "clients")
    assert keeping.refuse_unjudged(ObjectChange.of(clients)).allowed
    target = {"group": "policy.linkerd.io", "kind": "Server", "name": "payments"}
    named = {"group": "policy.linkerd.io", "kind": "MeshTLSAuthentication", "name": "all", "namespace": "clients"}
    spec = {"targetRef": target, "requiredAuthenticationRefs": [named]}
    keeping.update([policy("policy.linkerd.io/v1alpha1", "AuthorizationPolicy", "a", spec)])
    assert not keeping.refuse_unjudged(ObjectChange.of(clients)).allowed
    keeping.update(remove=[ObjectChange.of(labelled).ref, ObjectChange.of(stated).ref])
    assert keeping.refuse_unjudged(ObjectChange.of(clients)).allowed
    assert keeping.refuse_unjudged(change).allowed
    keeping.close()


def test_an_invariant_can_always_be_removed_and_is_always_validated() -> None:
    keeping = Judge(authority(closed()), _read(invariant("i")))
    assert keeping.refuse_unjudged(ObjectChange.of(invariant("i"), removed=True)).allowed
    assert keeping.refuse_unjudged(ObjectChange.of(invariant("j"))).allowed
    assert not keeping.refuse_unjudged(ObjectChange.of({**invariant("j"), "spec": {}})).allowed
    keeping.close()


# A tenant's Invariant


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_elsewhere(gep("q", "sandbox/*")), id="no time"),
        pytest.param(
            _elsewhere(gep("q", "sandbox/*") | {"spec": {"targetRefs": [], "action": "PERHAPS"}}), id="cannot be read"
        ),
    ],
)
def test_an_invariant_refuses_unproven_changes_in_its_own_namespace_only(change: Manifest) -> None:
    tenant = invariant("i", unproven="Refuse")
    judgement = judge(authority(closed()), ObjectChange.of(change), _read(tenant), budget=1e-9)
    assert judgement.allowed
    own = change | {"metadata": change["metadata"] | {"namespace": "shop"}}
    assert not judge(authority(closed()), ObjectChange.of(own), _read(tenant), budget=1e-9).allowed


def test_an_invariant_with_missing_destinations_refuses_nothing_elsewhere() -> None:
    tenant = invariant("i", unproven="Refuse")
    tenant["spec"]["never"]["to"] = {"services": ["shop/nowhere"]}
    change = gep("q", "sandbox/*")
    assert judge(authority(closed()), ObjectChange.of(_elsewhere(change)), _read(tenant)).allowed
    assert not judge(authority(closed()), ObjectChange.of(change), _read(tenant)).allowed


# Turns


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Block the judgement of a change named `slow` until this is set."""
    go_on, really = threading.Event(), JudgingCopies.judge

    def wait(judging: JudgingCopies, change: ObjectChange) -> ChangeJudgement:
        assert change.ref.name != "slow" or go_on.wait(PATIENCE)
        return really(judging, change)

    monkeypatch.setattr(JudgingCopies, "judge", wait)
    yield go_on
    go_on.set()


@pytest.mark.parametrize("client", [OTHER_USER, OTHER_PEER])
def test_a_busy_user_does_not_delay_other_users(held: threading.Event, client: ReviewClient) -> None:
    async def run() -> None:
        slow = [
            asyncio.ensure_future(keeping.judge_in_thread(ObjectChange.of(gep("slow", "shop/web")), ATTACKER))
            for _ in range(12)
        ]
        judgement = await keeping.judge_in_thread(ObjectChange.of(gep("q", "sandbox/*")), client)
        assert "breaks Invariant/shop/i" in judgement.refusals[0]
        assert not any(task.done() for task in slow)
        held.set()
        await asyncio.gather(*slow)

    keeping = Judge(authority(gep("p", "shop/web")), _read(invariant("i")))
    asyncio.run(run())
    keeping.close()


def test_statuses_are_evaluated_while_changes_are_judged(held: threading.Event) -> None:
    async def run() -> None:
        slow = asyncio.ensure_future(keeping.judge_in_thread(ObjectChange.of(gep("slow", "shop/web")), ATTACKER))
        standings = await asyncio.to_thread(keeping.evaluate)
        assert [standing.finding.standing.value for standing in standings] == ["holds"]
        assert not slow.done()
        held.set()
        await slow

    keeping = Judge(authority(gep("p", "shop/web")), _read(invariant("i")))
    asyncio.run(run())
    keeping.close()


def test_updates_do_not_pile_up_where_nothing_is_judged() -> None:
    keeping = Judge(authority(gep("p", "shop/web")))
    for _ in range(600):
        keeping.update(remove=[])
    end = asyncio.new_event_loop()
    end.run_until_complete(keeping.judge_in_thread(ObjectChange.of(gep("q", "shop/web"))))
    end.close()
    assert all(len(follower._updates) < 600 for follower in (*keeping._judging, keeping._standing))
    keeping.close()


def _read(*invariants: Manifest) -> list[InvariantObject]:
    return [read_invariant(each) for each in invariants]
