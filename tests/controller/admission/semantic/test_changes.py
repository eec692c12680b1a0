"""Changes of one object and their judgement, in every dialect."""

from __future__ import annotations

import asyncio
import time

import pytest

from eastgate import Settings
from eastgate.authority.authority import Authority
from eastgate.controller.admission.semantic import Judge, ObjectChange
from eastgate.controller.admission.semantic.words import MAX_LINE_CHARS, MAX_WARNING_BYTES, limited
from eastgate.reports.invariants.objects import InvariantError, read_invariant
from tests.controller.admission.semantic.world import (
    GATEWAY,
    Manifest,
    auth_policy,
    authority,
    gep,
    invariant,
    istio,
    judge,
    linkerd,
    namespace,
    network,
    pod,
    policy,
    service,
)
from tests.patience import PATIENCE

_SANDBOX = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "sandbox"}}}
_WEB = {"podSelector": {"matchLabels": {"app": "web"}}}
_CLIENTS = "web.shop.serviceaccount.identity.linkerd.cluster.local"
_MORE_CLIENTS = "toy.sandbox.serviceaccount.identity.linkerd.cluster.local"
_LINKERD = linkerd(_CLIENTS)

OPENINGS = {
    "a rule more": (
        [gep("p", "shop/web")],
        gep("p", "shop/web", "sandbox/*"),
        "sandbox/* can now reach shop/payments:8443",
    ),
    "another policy": (
        [gep("p", "shop/web")],
        gep("q", "sandbox/toy"),
        "sandbox/toy can now reach shop/payments:8443",
    ),
    "Istio": (
        [istio("p", "cluster.local/ns/shop/sa/web")],
        istio("p", "cluster.local/ns/shop/sa/web", "cluster.local/ns/sandbox/sa/toy"),
        "sandbox/toy can now reach shop/payments:8443",
    ),
    "a network policy": (
        [network("p", _WEB)],
        network("p", _WEB, _SANDBOX),
        "sandbox/* can now reach shop/payments:8443",
    ),
    "Linkerd, by what a policy refers to": (
        _LINKERD,
        linkerd(_CLIENTS, _MORE_CLIENTS)[2],
        "sandbox/toy can now reach shop/payments:8443",
    ),
    "Kuadrant": (
        [*GATEWAY, auth_policy(denies=True)],
        auth_policy(denies=False),
        "gateway:shop/web",
    ),
}


@pytest.mark.parametrize("name", OPENINGS)
def test_openings_come_first(name: str) -> None:
    manifests, change, expected = OPENINGS[name]
    judgement = judge(authority(*manifests), ObjectChange.of(change))
    assert judgement.allowed
    assert expected in judgement.warnings[0], judgement.warnings


@pytest.mark.parametrize("name", [name for name in OPENINGS if name != "another policy"])
def test_the_other_way_round_it_closes(name: str) -> None:
    manifests, change, expected = OPENINGS[name]
    before = [each for each in manifests if each["metadata"] == change["metadata"] and each["kind"] == change["kind"]]
    others = [each for each in manifests if each not in before]
    judgement = judge(authority(*others, change), ObjectChange.of(before[0]))
    assert not [warning for warning in judgement.warnings if "can now reach" in warning]
    closing = expected.replace("can now reach", "can no longer reach")
    assert any(closing in warning for warning in judgement.warnings), judgement.warnings


def test_the_removal_of_a_denial_opens() -> None:
    denial = gep("d", "sandbox/*", action="DENY")
    judgement = judge(authority(gep("p", "sandbox/*"), denial), ObjectChange.of(denial, removed=True))
    assert judgement.warnings == ("sandbox/* can now reach shop/payments:8443",)


def test_a_change_without_effect_has_no_warnings() -> None:
    judgement = judge(authority(gep("p", "shop/web")), ObjectChange.of(gep("q", "shop/web")))
    assert judgement.warnings == ()
    assert judgement.determined


def test_a_service_that_leads_elsewhere_is_compared() -> None:
    closed = authority(gep("p", "shop/web"), pod("shop", "other"))
    moved = {**service("shop", "payments"), "spec": {"selector": {"app": "other"}, "ports": [{"port": 8443}]}}
    warnings = judge(closed, ObjectChange.of(moved)).warnings
    assert any("can now reach service:shop/payments" in warning for warning in warnings), warnings


def test_a_policy_that_cannot_be_read_is_not_silent() -> None:
    broken = gep("p", "shop/web")
    broken["spec"]["action"] = "PERHAPS"
    warnings = judge(authority(gep("q", "sandbox/*")), ObjectChange.of(broken)).warnings
    assert any(warning.startswith("not proven: ") for warning in warnings), warnings


def test_a_judgement_without_time_has_a_warning() -> None:
    judgement = judge(authority(gep("p", "shop/web")), ObjectChange.of(gep("q", "sandbox/*")), budget=1e-9)
    assert judgement.warnings == ("not proven: there was no time left to compare the rest",)
    assert not judgement.determined


def test_judging_leaves_no_trace() -> None:
    given = authority(gep("p", "shop/web"))
    before = dict(given.world.objects), list(given.policies)
    keeping = Judge(given)
    first = keeping.judge(ObjectChange.of(gep("q", "sandbox/*")))
    assert keeping.judge(ObjectChange.of(gep("q", "sandbox/*"))) == first
    assert (dict(given.world.objects), list(given.policies)) == before
    keeping.close()


def test_a_judge_follows_stored_changes() -> None:
    keeping = Judge(authority(gep("p", "shop/web")))
    change = gep("q", "sandbox/*")
    keeping.update([change, invariant("i")])
    assert keeping.judge(ObjectChange.of(change)).warnings == ()
    assert [standing.finding.standing.value for standing in keeping.evaluate()] == ["broken"]
    assert [standing.changed for standing in keeping.evaluate()] == [False]
    keeping.update(remove=[ObjectChange.of(change).ref])
    assert [standing.finding.standing.value for standing in keeping.evaluate()] == ["holds"]
    keeping.close()


def test_an_idle_judge_does_not_keep_updates() -> None:
    keeping = Judge(authority(gep("p", "shop/web")))
    for number in range(50):
        keeping.update([gep(f"q{number}", "sandbox/*")])
        keeping.update(remove=[ObjectChange.of(gep(f"q{number}", "sandbox/*")).ref])
    _wait_until_followed(keeping)
    keeping.close()


def test_a_judge_that_could_not_follow_judges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would judge with an outdated state, and could admit a breach of an Invariant."""
    keeping = Judge(authority(gep("p", "shop/web")))
    with monkeypatch.context() as broken:
        broken.setattr(Authority, "update", _raise)
        keeping.update([gep("q", "sandbox/*")])
        _wait_until_followed(keeping)
    with pytest.raises(RuntimeError, match="could not be applied"):
        keeping.judge(ObjectChange.of(gep("r", "shop/*")))
    keeping.close()


def _raise(*_: object) -> None:
    raise ValueError("odd")


def _wait_until_followed(keeping: Judge) -> None:
    ends = time.monotonic() + PATIENCE
    while any(follower._updates or follower._lock.locked() for follower in (*keeping._judging, keeping._standing)):
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_an_event_loop_is_not_blocked() -> None:
    keeping = Judge(authority(gep("p", "shop/web")))
    judgement = asyncio.run(keeping.judge_in_thread(ObjectChange.of(gep("q", "sandbox/*"))))
    assert judgement.warnings[0] == "sandbox/* can now reach shop/payments:8443"
    keeping.close()


def test_lines_are_short_and_few() -> None:
    many = [gep("p", *(f"{name}-{number}/account" for number in range(40) for name in ("a-long-name", "another")))]
    warnings = judge(authority(gep("p", "shop/web")), ObjectChange.of(many[0])).warnings
    assert all(len(warning) <= MAX_LINE_CHARS for warning in warnings)
    assert "more can now reach shop/payments:8443" in warnings[0]
    lots = limited(f"{number} {'x' * 100}" for number in range(100))
    assert sum(len(warning.encode()) for warning in lots) <= MAX_WARNING_BYTES
    assert lots[-1].startswith("and ")


# Invariants


def _refused(manifests: list[Manifest], change: Manifest, *invariants: Manifest, removed: bool = False) -> str:
    read = [read_invariant(each) for each in invariants]
    return " ".join(judge(authority(*manifests), ObjectChange.of(change, removed=removed), read).refusals)


@pytest.mark.parametrize("home", ["shop", None])
def test_a_breach_of_an_invariant_is_refused_with_the_request_and_the_field(home: str | None) -> None:
    refusal = _refused([gep("p", "shop/web")], gep("q", "sandbox/*"), invariant("i", home=home, existingOnly=True))
    assert refusal.startswith(f"breaks {'Invariant/shop/i' if home else 'ClusterInvariant/i'}: ")
    assert "sa:sandbox/" in refusal
    assert "-> pod:shop/payments-0 port 8443" in refusal
    assert "AuthorizationPolicy/shop/q rule 0 allows it at spec.rules[0]" in refusal


def test_an_already_broken_invariant_refuses_only_further_breaches() -> None:
    broken = [gep("p", "sandbox/toy")]
    stated = invariant("i", includeFuture=True)
    assert _refused(broken, gep("q", "shop/web"), stated) == ""
    assert "sa:sandbox/" in _refused(broken, gep("q", "sandbox/*"), stated)


def test_an_invariant_that_includes_the_future_covers_future_workloads() -> None:
    others = gep("q", "sandbox/*")
    others["spec"]["targetRefs"][0]["selector"]["matchLabels"] = {"app": "payments", "tier": "new"}
    manifests = [gep("p", "shop/web")]
    assert "does not exist yet" in _refused(manifests, others, invariant("i", includeFuture=True))
    assert _refused(manifests, others, invariant("i")) == ""
    assert _refused(manifests, others, invariant("i", existingOnly=True)) == ""


def test_always_is_broken_by_a_denial() -> None:
    always = invariant("i", mode="always", existingOnly=True)
    manifests = [gep("p", "sandbox/*", "shop/*")]
    refusal = _refused(manifests, gep("d", "sandbox/*", action="DENY"), always)
    assert "must always be allowed would be denied" in refusal
    assert _refused(manifests, gep("d", "shop/*", action="DENY"), always) == ""


def test_an_unproven_change_is_refused_if_an_invariant_requires_proof() -> None:
    change = ObjectChange.of(gep("q", "sandbox/*"))
    for unproven, refused in (("Warn", False), ("Refuse", True)):
        read = [read_invariant(invariant("i", unproven=unproven))]
        judgement = judge(authority(gep("p", "shop/web")), change, read, budget=1e-9)
        assert bool(judgement.refusals) is refused
        assert any("not proven" in warning for warning in judgement.warnings)


@pytest.mark.parametrize(("home", "existing_only"), [(None, True), ("shop", False)])
def test_a_label_by_which_an_invariant_selects_namespaces_is_refused_where_it_breaks_it(
    home: str | None, existing_only: bool
) -> None:
    stated = invariant("i", home=home, existingOnly=existing_only)
    stated["spec"]["never"]["from"] = {"except": {"namespaces": {"matchLabels": {"pci": "true"}}}}
    plain, trusted, other = namespace("vault"), namespace("vault"), namespace("vault")
    trusted["metadata"]["labels"]["pci"] = "true"
    other["metadata"]["labels"]["team"] = "cards"
    manifests = [gep("p", "vault/app"), trusted]
    assert _refused(manifests, plain, stated).startswith("breaks ")
    assert "sa:vault/" in _refused(manifests, other, stated)
    other["metadata"]["labels"]["pci"] = "true"
    assert _refused(manifests, other, stated) == ""
    stated["spec"]["onNotProven"] = "Refuse"
    assert (
        _refused([gep("p", "vault/app"), plain], trusted, stated) == ""
    )  # broken before the change, and kept after it
    assert "those of vault change" in _refused([gep("p", "sandbox/toy"), trusted], plain, stated)


def test_a_service_that_an_invariant_is_about_may_not_lead_to_open_pods() -> None:
    stated = invariant("i", home=None, existingOnly=True)
    stated["spec"]["never"]["to"] = {"services": ["shop/payments"]}
    manifests = [gep("p", "shop/web"), pod("shop", "other")]
    moved = {**service("shop", "payments"), "spec": {"selector": {"app": "other"}, "ports": [{"port": 8443}]}}
    assert "breaks ClusterInvariant/i" in _refused(manifests, moved, stated)
    more = service("shop", "payments")
    more["spec"]["ports"].append({"name": "more", "port": 8444})
    assert _refused(manifests, more, stated) == ""


@pytest.mark.parametrize("label", ["app", "tier"])
def test_a_pod_that_becomes_a_destination_of_an_invariant_is_refused_if_it_is_open(label: str) -> None:
    stated = invariant("i", existingOnly=True)
    stated["spec"]["never"]["to"] = {"pods": {"matchLabels": {label: "cards"}}}
    open_pod, closed_pod = pod("shop", "other"), pod("shop", "payments")
    manifests = [gep("p", "shop/web"), open_pod]
    for each, is_refused in ((open_pod, True), (closed_pod, label == "app")):  # the policy selects by `app`
        labelled = {**each, "metadata": {**each["metadata"], "labels": {**each["metadata"]["labels"], label: "cards"}}}
        assert bool(_refused(manifests, labelled, stated)) is is_refused
        labels = {**each["metadata"]["labels"], "other": "cards"}
        assert _refused(manifests, {**each, "metadata": {**each["metadata"], "labels": labels}}, stated) == ""


def _only_web(*, includeFuture: bool = False) -> Manifest:  # noqa: N803 - as it is written
    stated = invariant("i", mode="only", includeFuture=includeFuture)
    stated["spec"]["only"]["from"] = {"pods": {"matchLabels": {"app": "web"}}}
    return stated


def test_a_network_policy_that_lets_other_pods_in_breaks_an_invariant_about_the_labels_of_callers() -> None:
    manifests = [network("p", _WEB)]
    assert "-> pod:shop/payments-0 port 8443" in _refused(manifests, network("p", _WEB, _SANDBOX), _only_web())
    of_nobody = {"podSelector": {"matchLabels": {"app": "nothing-has-this"}}}
    assert _refused(manifests, network("p", _WEB, of_nobody), _only_web()) == ""
    refusal = _refused(manifests, network("p", _WEB, of_nobody), _only_web(includeFuture=True))
    assert "that caller does not exist yet" in refusal


def test_a_caller_that_loses_the_labels_that_an_invariant_asks_for_is_refused() -> None:
    web = pod("shop", "web")
    changed = {**web, "metadata": {**web["metadata"], "labels": {"app": "other"}}}
    assert "breaks Invariant/shop/i" in _refused([gep("p", "shop/web"), web], changed, _only_web())


def test_a_template_is_judged_by_the_pods_that_it_will_replace() -> None:
    def maker(**labels: str) -> Manifest:
        template = {"metadata": {"labels": {"app": "payments", **labels}}, "spec": {"serviceAccountName": "payments"}}
        spec = {"selector": {"matchLabels": {"app": "payments"}}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s", "namespace": "shop"}} | {
            "spec": spec
        }

    owned = pod("shop", "payments", address="10.0.0.9")
    owned["metadata"]["name"] = "s-0"
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "1", "controller": True}
    owned["metadata"]["ownerReferences"] = [owner]
    owned["metadata"]["labels"]["added"] = "by-others"
    only_untiered = gep("p", "shop/web")
    selector = {"matchLabels": {"app": "payments"}, "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}
    only_untiered["spec"]["targetRefs"][0]["selector"] = selector
    manifests = [only_untiered, maker(), owned]
    stated = invariant("i", existingOnly=True)
    assert "pod:shop/s-0" in _refused(manifests, maker(tier="new"), stated)
    assert _refused(manifests, maker(team="new"), stated) == ""
    warnings = judge(authority(*manifests), ObjectChange.of(maker(tier="new"))).warnings
    assert any("can now reach shop/s-0" in warning for warning in warnings), warnings


def test_an_annotation_bypasses_nothing() -> None:
    change = gep("q", "sandbox/*")
    change["metadata"]["annotations"] = {"eastgate.dev/ignore-invariants": "true"}
    assert _refused([gep("p", "shop/web")], change, invariant("i")) != ""


def test_an_invariant_is_validated_and_warned_of_where_it_does_not_hold() -> None:
    given = authority(gep("p", "sandbox/*"))
    assert "does not hold now" in judge(given, ObjectChange.of(invariant("i"))).warnings[0]
    beyond = invariant("i")
    beyond["spec"]["never"]["to"]["namespaces"] = {}
    assert judge(given, ObjectChange.of(beyond)).refusals
    with pytest.raises(InvariantError):
        read_invariant({**invariant("i"), "spec": {}})


def test_an_invariant_of_a_namespace_is_about_that_namespace() -> None:
    elsewhere = gep("q", "sandbox/*")
    elsewhere["metadata"]["namespace"] = "sandbox"
    assert _refused([], elsewhere, invariant("i", existingOnly=True)) == ""


def test_settings_are_those_of_the_authority() -> None:
    chosen = Settings.from_mapping({"trustDomain": "td"})
    judgement = judge(authority(gep("p", "shop/web"), settings=chosen), ObjectChange.of(gep("q", "sandbox/*")))
    assert judgement.warnings[0] == "sandbox/* can now reach shop/payments:8443"


def test_another_kind_in_the_way_changes_nothing() -> None:
    config = policy("v1", "ConfigMap", "c", {})
    del config["spec"]
    assert judge(authority(), ObjectChange.of(config)).warnings == ()
