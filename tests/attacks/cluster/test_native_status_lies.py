"""A native policy is not shown in force before it is written, nor if writing failed."""

from __future__ import annotations

import pytest

from eastgate.controller.status import StoredPolicy, assess
from eastgate.controller.status.natively import without_failures
from eastgate.convert.native import NativeMesh, NativeOutcome, NativePlan, NativeState, WriteFailure
from eastgate.convert.native.reconciling import NativeStep, NativeStepKind
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import ApiError
from tests.controller.status.clusters import authority_of, pod, policy, policy_of, to_pods, view_of, with_proxy

NOW = StoredPolicy(2, "u")


def _shown(written: StoredPolicy | None) -> tuple[str, str]:
    authority = authority_of(with_proxy(pod("web-0")), policy(to_pods(app="web")))
    read = policy_of(authority)
    outcome = NativeOutcome(read.ref, "u", NativeState.WRITTEN, ("AuthorizationPolicy/shop/web",))
    view = view_of(authority, native=NativePlan(NativeMesh.ISTIO, (), (outcome,)))
    view.written = {read.ref: written} if written is not None else {}
    assessment = assess(read, NOW, view)
    assert assessment is not None
    (condition,) = (each for each in assessment.entries[0].conditions if each.type == "Programmed")
    return condition.status, condition.reason


def test_what_was_written_is_in_force() -> None:
    assert _shown(NOW) == ("True", "Programmed")


@pytest.mark.parametrize("written", [None, StoredPolicy(1, "u"), StoredPolicy(2, "before")])
def test_another_generation_or_nothing_is_not(written: StoredPolicy | None) -> None:
    assert _shown(written) == ("False", "Reconciling")


def test_a_failure_counts_for_its_namespace_and_the_cluster() -> None:
    refs = [PolicyRef("P", namespace, "p", "g") for namespace in ("shop", "web", None)]
    manifest = {
        "apiVersion": "security.istio.io/v1",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": "p", "namespace": "shop"},
    }
    failure = WriteFailure(NativeStep(NativeStepKind.CREATE, manifest), ApiError(403, "Forbidden", "no"))
    assert set(without_failures(dict.fromkeys(refs, NOW), [failure])) == {refs[1]}
    assert set(without_failures(dict.fromkeys(refs, NOW), [])) == set(refs)
