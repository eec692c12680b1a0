"""Admission judges every change that affects verdicts, also a change of labels, annotations or finalizers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from eastgate.controller.admission.changes import AdmissionJudgement, AdmissionRefusal, RequestedChange
from eastgate.controller.admission.webhooks import Webhooks
from tests.controller.admission.reviews import Manifest, admission_review, policy, rules

NARROW, WIDE = rules([{"authorizationSource": {"serviceAccounts": ["web"]}}]), rules([{}])


def istio(**annotations: str) -> Manifest:
    return {
        "apiVersion": "security.istio.io/v1",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": "p", "namespace": "shop", "annotations": annotations},
        "spec": {"action": "DENY", "rules": [{}]},
    }


def linkerd_server(**labels: str) -> Manifest:
    return {
        "apiVersion": "policy.linkerd.io/v1beta3",
        "kind": "Server",
        "metadata": {"name": "p", "namespace": "shop", "labels": labels},
        "spec": {"podSelector": {}, "port": 80},
    }


async def refuse(_change: RequestedChange) -> AdmissionJudgement:
    return AdmissionJudgement((AdmissionRefusal("it breaks an Invariant"),))


def is_allowed(new: Manifest, old: Manifest) -> bool:
    webhooks = Webhooks(judge=refuse)
    try:
        answer: dict[str, Any] = asyncio.run(webhooks.validate(admission_review(new, old)))
    finally:
        webhooks.close()
    allowed: bool = answer["response"]["allowed"]
    return allowed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (istio(), istio(**{"istio.io/dry-run": "true"})),
        (policy(NARROW), policy(NARROW, annotations={"eastgate.dev/mode": "audit"})),
        (linkerd_server(), linkerd_server(open="yes")),  # a ServerAuthorization may select it by this label
        # A finalizer holds the object. It counts until the finalizer is removed, and its spec can change.
        (
            policy(NARROW, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["example.org/mine"]),
            policy(WIDE, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["example.org/mine"]),
        ),
        # Removal of the last finalizer deletes the object. Objects that replaced it before may be gone, too.
        (
            policy(NARROW, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["example.org/mine"]),
            policy(NARROW, deletionTimestamp="2026-01-01T00:00:00Z"),
        ),
    ],
    ids=["dry-run", "audit", "labels", "being-deleted", "last-finalizer"],
)
def test_what_opens_something_is_judged(old: Manifest, new: Manifest) -> None:
    assert not is_allowed(new, old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (istio(), istio(team="shop")),
        (
            policy(NARROW, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["example.org/mine", "a.example/b"]),
            policy(NARROW, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["example.org/mine"]),
        ),
        (policy(NARROW, finalizers=["example.org/mine"]), policy(NARROW)),
    ],
    ids=["annotation", "one-of-two-finalizers", "finalizer"],
)
def test_what_changes_nothing_is_not_judged(old: Manifest, new: Manifest) -> None:
    assert is_allowed(new, old)
