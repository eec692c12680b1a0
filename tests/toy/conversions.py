"""Conversion of guest lists to GEP-3779. A list in audit mode stays in audit mode."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.dialects.converting import ConversionJob
from eastgate.reading.manifests import Document, Plain
from tests.toy import codes
from tests.toy.model import GuestList

__all__ = ["to_gep"]


def to_gep(policies: Sequence[tuple[GuestList, Document]], job: ConversionJob) -> None:
    """Convert each list to an ALLOW policy with service accounts."""
    for policy, document in policies:
        if policy.audit:
            job.keep(document, codes.AUDITED, f"{policy.ref} is only audited", policy.span)
        else:
            job.write(document, _manifest(document))


def _manifest(document: Document) -> dict[str, Plain]:
    assert document.node is not None
    spec = document.node["spec"]
    guests: list[Plain] = [guest.text for guest in spec.get("guests") or ()]
    selector: dict[str, Plain] = {"matchLabels": {"app": spec["app"].text}}
    rules: list[Plain] = [{"authorizationSource": {"serviceAccounts": guests}}] if guests else []
    return {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": document.name, "namespace": document.home},
        "spec": {
            "targetRefs": [{"kind": "Pod", "selector": selector}],
            "action": "ALLOW",
            "enforcementLevel": "network",
            "rules": rules,
        },
    }
