"""The answers of a replica to new pods and to stored policies."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import pytest

from eastgate import Authority, load
from eastgate.authority.reading import read_plain
from eastgate.authority.sources.documents import ref_of
from eastgate.authority.sources.listing import ClusterPath
from eastgate.authority.sources.sizes import PolicySizes, size_of
from eastgate.controller.admission.changes import AdmissionJudgement, ChangeOperation, Mutation, RequestedChange
from eastgate.controller.admission.configuration import validating_configuration
from eastgate.controller.admission.semantic import Judge
from eastgate.controller.admission.webhooks import Webhooks
from eastgate.controller.admitting import judge_change, mutate_pod, refuse_too_large
from eastgate.controller.injection import InjectionOptions
from eastgate.reports.invariants.objects import read_invariant
from eastgate.settings import Settings, Size
from tests.authority.sources.objects import CART, GROUP, GUARDED, policy
from tests.controller.admission.running import run_webhooks
from tests.controller.admission.semantic.world import authority, gep
from tests.programs import ApiServer


def _created(**spec: Any) -> Mutation:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "cart-", "annotations": spec.pop("annotations", {})},
        "spec": {"containers": [{"name": "cart", "image": "cart"}], **spec},
    }
    change = RequestedChange(ChangeOperation.CREATE, "", "v1", "Pod", "shop", "", None, pod)
    return mutate_pod(InjectionOptions(), change)


def test_every_pod_in_a_review_gets_a_sidecar_without_knowledge_of_its_namespace() -> None:
    assert any(operation["path"] == "/spec/initContainers" for operation in _created().patch)


def test_a_pod_that_wants_none_gets_none() -> None:
    assert _created(annotations={"eastgate.dev/inject": "false"}).patch == ()


def test_a_pod_on_the_network_of_its_node_is_warned_of() -> None:
    mutation = _created(hostNetwork=True)
    assert mutation.patch == ()
    assert len(mutation.judgement.warnings) == 1


@pytest.mark.parametrize("spec", [{"securityContext": {"runAsUser": 1337}}, {"containers": "cart"}])
def test_a_pod_that_cannot_have_one_is_refused(spec: dict[str, Any]) -> None:
    mutation = _created(**spec)
    assert mutation.patch == ()
    assert mutation.judgement.refusals


@pytest.mark.apiserver
def test_kubectl_shows_which_pods_nothing_guards_and_which_invariant_refuses(own_api_server: ApiServer) -> None:
    server = own_api_server
    server.install("eastgate")
    shop = server.namespace("shop")
    for name, made in {"guarded": GUARDED, "bare": CART}.items():
        metadata = {"name": name, "labels": {"app": "cart"}}
        server.create(f"/api/v1/namespaces/{shop}/pods", {**made, "metadata": metadata})
    metadata = {"name": "closed", "namespace": shop, "uid": "1"}
    never = {"from": {"serviceAccounts": [f"{shop}/thief"]}, "to": {"pods": {"matchLabels": {"app": "cart"}}}}
    head = {"apiVersion": "eastgate.dev/v1alpha1", "kind": "Invariant", "metadata": metadata}
    invariant = read_invariant({**head, "spec": {"never": never, "existingOnly": True}})
    server.create(
        f"/apis/gateway.networking.x-k8s.io/v1alpha2/namespaces/{shop}/authorizationpolicies",
        policy(shop, "cart", ["web"]),
    )
    live = load(ClusterPath(server.kubeconfig), strict=False)
    judge = Judge(live, [invariant], budget=None)
    wider, broken = json.dumps(policy(shop, "cart", ["web", "admin"])), json.dumps(policy(shop, "cart", ["thief"]))
    with run_webhooks(Webhooks(judge=partial(judge_change, judge, "the controller", live))) as running:
        server.apply(validating_configuration(running.webhook))
        dry = ("apply", "--dry-run=server", "-f", "-")
        server.wait_until(lambda: server.try_kubectl(*dry, stdin=broken).returncode != 0)
        warned = server.try_kubectl(*dry, stdin=wider)
        assert f"Warning: not enforced at pods without an eastgate proxy: {shop}/bare\n" in warned.stderr
        refused = server.kubectl(*dry, stdin=broken, fails=True)
        assert f"denied the request: breaks Invariant/{shop}/closed: " in refused
        assert ": : " not in refused
    judge.close()


def test_where_a_mesh_enforces_no_pod_needs_a_proxy() -> None:
    bare = {**CART, "metadata": {"name": "bare", "namespace": "shop", "uid": "1", "labels": {"app": "cart"}}}
    bare_authority = Authority(read_plain([bare], Settings()), strict=False)
    judge = Judge(bare_authority, budget=None)
    new = policy("shop", "cart", ["web"])
    change = RequestedChange(
        ChangeOperation.CREATE, GROUP, "v1alpha2", "AuthorizationPolicy", "shop", "cart", None, new
    )
    warnings = {
        guarding is not None: asyncio.run(judge_change(judge, "us", guarding, change)).warnings
        for guarding in (bare_authority, None)
    }
    judge.close()
    assert "not enforced at pods without an eastgate proxy: shop/bare" in warnings[True]
    assert not any("not enforced" in warning for warning in warnings[False])


def _changed(user: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> AdmissionJudgement:
    """Change a policy in a namespace with space for one policy of its size, which it has."""
    first = policy("shop", "first", ["web"])
    sizes = PolicySizes(Settings(namespace_limit=Size(size_of(first))))
    sizes.put(ref_of(first), first)
    operation = ChangeOperation.DELETE if new is None else ChangeOperation.UPDATE if old else ChangeOperation.CREATE
    change = RequestedChange(operation, GROUP, "v1alpha2", "AuthorizationPolicy", "shop", "first", old, new, user=user)
    return refuse_too_large(sizes, "us", change)


@pytest.mark.parametrize(
    ("user", "old", "new", "is_refused"),
    [
        ("anna", None, policy("shop", "second", ["web"]), True),
        ("anna", None, policy("other", "second", ["web"]), False),
        ("anna", policy("shop", "first", ["web"]), policy("shop", "first", ["web", "batch"]), True),
        ("anna", policy("shop", "first", ["web"]), policy("shop", "first", ["bat"]), False),
        ("anna", policy("shop", "first", ["web"]), None, False),
        ("us", None, policy("shop", "second", ["web"]), False),
    ],
    ids=["another", "elsewhere", "larger", "as large", "deleted", "ours"],
)
def test_a_policy_that_its_namespace_has_no_room_for_is_refused(
    user: str, old: dict[str, Any] | None, new: dict[str, Any] | None, is_refused: bool
) -> None:
    refusals = _changed(user, old, new).refusals
    assert [refusal.message[:6] for refusal in refusals] == (["EG0143"] if is_refused else [])


@pytest.mark.parametrize(("budget", "dry_run", "lines"), [(None, False, 0), (1e-9, False, 1), (1e-9, True, 0)])
def test_a_change_that_is_admitted_although_nothing_is_proven_is_logged_and_counted(
    caplog: pytest.LogCaptureFixture, budget: float | None, dry_run: bool, lines: int
) -> None:
    judge, counted = Judge(authority(gep("payments", "web")), budget=budget), list[int]()
    wider = gep("payments", "web", "sandbox/toy")
    group, _, version = wider["apiVersion"].partition("/")
    change = RequestedChange(
        *(ChangeOperation.UPDATE, group, version, wider["kind"], "shop", "payments"),
        *(gep("payments", "web"), wider),
        user="alice",
        dry_run=dry_run,
    )
    judged = asyncio.run(judge_change(judge, "the controller", None, change, lambda: counted.append(1)))
    judge.close()
    assert judged.refusals == ()
    assert len(counted) == lines
    assert [record.levelname for record in caplog.records] == ["WARNING"] * lines
    for record in caplog.records:
        expected = (
            "UPDATE of AuthorizationPolicy/shop/payments by alice is admitted, but it is not proven what it opens"
        )
        assert record.getMessage() == expected
        fields = {"user": "alice", "namespace": "shop", "kind": "AuthorizationPolicy", "object": "payments"}
        assert fields.items() <= vars(record).items()
        assert any(warning.startswith("not proven: ") for warning in vars(record)["warnings"])
