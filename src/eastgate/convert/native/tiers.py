"""Cluster-wide policies that only deny, as policies of each namespace: Istio, too, asks every DENY first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eastgate.cluster import PodsAcross
from eastgate.convert.native.model import Json, NativeMesh
from eastgate.convert.native.situation import Situation, SourcePolicy
from eastgate.convert.native.targets import pods_of
from eastgate.convert.selectors import write_selector
from eastgate.dialects.gep3779 import GROUP
from eastgate.dialects.gep3779.model import Action, Policy, Tier
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.reading.manifests.document import content_of


def goes_first(source: SourcePolicy, situation: Situation) -> bool:
    """Return whether a policy is of the Admin tier and denies whatever others say: none before it allows or passes."""
    policy = source.policy
    if situation.mesh is not NativeMesh.ISTIO or policy is None or policy.tier is not Tier.ADMIN:
        return False
    if policy.action is not Action.DENY or policy.audit:
        return False
    others = (other.policy for other in situation.sources if other.policy is not None)
    return not any(_is_before(other, policy) for other in others)


def _is_before(other: Policy, policy: Policy) -> bool:
    is_rival = other.tier is Tier.ADMIN and other.level is policy.level and not other.audit
    return is_rival and other.action is not Action.DENY and other.priority < policy.priority


def in_namespaces(source: SourcePolicy, situation: Situation) -> Iterator[Json]:
    """Yield a policy with the same rules for each namespace; not for the root namespace, where it would be for all."""
    content = content_of(source.document)
    assert isinstance(content, Mapping)  # noqa: S101 - an object is a mapping
    spec = content["spec"]
    assert isinstance(spec, Mapping)  # noqa: S101 - it was read
    said = {key: spec[key] for key in ("action", "enforcementLevel", "rules") if key in spec}
    root = situation.settings.section(IstioSettings).root_namespace
    for target in source.closing.targets:
        assert isinstance(target, PodsAcross)  # noqa: S101 - it is cluster-wide
        for pods in pods_of(target, situation):
            if pods.namespace != root:
                yield {
                    "apiVersion": f"{GROUP}/v1alpha2",
                    "kind": "AuthorizationPolicy",
                    "metadata": {"name": source.ref.name, "namespace": pods.namespace},
                    "spec": {"targetRefs": [{"kind": "Pod", "selector": write_selector(pods.selector)}], **said},
                }
