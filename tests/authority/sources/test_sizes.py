"""The sizes of policies: their cost, the policies beyond a limit, and the treatment of these."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate import Settings, SettingsError
from eastgate.authority.authority import Authority
from eastgate.authority.reading import FaultReason, read_plain, sort_documents
from eastgate.authority.sources.codes import NAMESPACE_TOO_LARGE, POLICY_TOO_LARGE
from eastgate.authority.sources.documents import document_of, ref_of, relevant
from eastgate.authority.sources.sizes import PolicySizes, policy_problem, size_of
from eastgate.cluster import Everything, PodsMatching
from eastgate.dialects.rejected import RejectedPolicy
from eastgate.ir import PolicyRef
from eastgate.manifests import Reporter
from eastgate.reading.manifests.document import content_of
from eastgate.reading.manifests.rendered import forget_renderings
from eastgate.settings import Size
from tests.authority.sources.large import LARGE
from tests.authority.sources.objects import GROUP, policy


def _named(name: str, created: int, accounts: int = 1, namespace: str = "shop") -> dict[str, Any]:
    obj = policy(namespace, name, [f"web-{number:03}" for number in range(accounts)])
    obj["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{created:02}Z"
    return obj


@pytest.mark.parametrize(
    ("obj", "size"),
    [
        ({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}, 30 + 32 * 3),
        ({"metadata": {"name": "a"}, "spec": {}}, 11 + 32 * 2),
        ({"metadata": {"name": "a"}, "spec": [{}, {}]}, 16 + 32 * 4),
        ({"metadata": {"uid": "1", "managedFields": [1, 2], "resourceVersion": "7"}, "status": {"a": 1}}, 2 + 32),
        ({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x"}}}, 18 + 32 * 2),
    ],
)
def test_the_size_counts_what_people_write(obj: dict[str, Any], size: int) -> None:
    assert size_of(obj) == size


def test_many_small_values_are_as_large_as_their_cost() -> None:
    """A rule `{}` has three bytes, and costs as much as any other rule."""
    assert size_of(LARGE["empty_rules"]("shop", "big", 30_000)) > 10 * 30_000


# Memory


def _kept(obj: dict[str, Any], settings: Settings) -> tuple[int, Authority]:
    """Return the bytes that an authority keeps for an object after reading it."""
    raw = msgspec.json.encode(obj)
    gc.collect()
    tracemalloc.start()
    try:
        manifests = sort_documents([document_of(relevant(msgspec.json.decode(raw)))], settings, Reporter())
        forget_renderings()
        authority = Authority(manifests, strict=False)
        del manifests
        gc.collect()
        return tracemalloc.get_traced_memory()[0], authority
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", ["accounts", "rules", "empty_rules", "peers", "principals", "tools"])
def test_a_policy_that_selects_nothing_costs_no_more_than_its_rules(shape: str) -> None:
    """Its text and its values with positions are freed: they take as much again, and twice that for a judge."""
    _kept(LARGE[shape]("shop", "small", 20_000), Settings())  # imported and compiled once
    obj = LARGE[shape]("shop", "big", 200_000)
    kept, _authority = _kept(obj, Settings())
    assert kept < 10 * size_of(obj)


def test_a_position_is_found_again() -> None:
    document = document_of(relevant(policy("shop", "cart", ["web"])))
    manifests = sort_documents([document], Settings(), Reporter())
    forget_renderings()
    span = next(iter(manifests.policies[0].origins)).span
    assert span is not None
    assert str(span).endswith("spec.rules[0]")
    assert "authorizationSource" in span.first_line


def test_warnings_about_an_object_go_with_it() -> None:
    authority = Authority(sort_documents([], Settings(), Reporter()), strict=False)
    obj = policy("shop", "cart", ["web"])
    obj["spec"]["rules"] = []
    for _ in range(3):
        authority.update(sort_documents([document_of(relevant(obj))], Settings(), Reporter(), whole=False))
    once = len(authority.warnings)
    authority.update(remove=[ref_of(obj)])
    assert once <= 1
    assert not authority.warnings


# Limits


def test_a_policy_may_be_as_large_as_the_limit() -> None:
    settings = Settings(policy_limit=Size(1000))
    assert policy_problem(1000, settings) is None
    problem = policy_problem(1001, settings)
    assert problem is not None
    assert (problem.code, "1,001 bytes, and at most 1,000" in problem.message) == (POLICY_TOO_LARGE, True)


@given(st.permutations(range(6)))
def test_the_newest_are_beyond_the_limit_in_whatever_order_they_come(order: list[int]) -> None:
    objects = [_named(f"p{number}", created=number // 2) for number in range(6)]
    sizes = PolicySizes(Settings(namespace_limit=Size(size_of(objects[0]) * 4)))
    for number in order:
        sizes.put(ref_of(objects[number]), objects[number])
    assert sizes.settle() == {ref_of(objects[4]), ref_of(objects[5])}
    beyond = [sizes.problem_of(ref_of(obj)) for obj in objects]
    assert [problem.code if problem else None for problem in beyond] == [None] * 4 + [NAMESPACE_TOO_LARGE] * 2


def test_a_deletion_never_puts_another_policy_beyond_the_limit() -> None:
    objects = [_named(f"p{number}", number, accounts) for number, accounts in enumerate((10, 1, 30, 1))]
    limit = Size(sum(map(size_of, objects[:3])) - 1)
    sizes = PolicySizes(Settings(namespace_limit=limit))
    for obj in objects:
        sizes.put(ref_of(obj), obj)
    assert sizes.settle() == {ref_of(objects[2]), ref_of(objects[3])}
    sizes.remove(ref_of(objects[0]))
    assert sizes.settle() == {ref_of(objects[2]), ref_of(objects[3])}
    assert not any(sizes.problem_of(ref_of(obj)) for obj in objects)


def test_namespaces_and_what_is_too_large_by_itself_do_not_count() -> None:
    small, large = _named("small", 1), _named("large", 0, accounts=500)
    settings = Settings(policy_limit=Size(2000), namespace_limit=Size(size_of(small)))
    sizes = PolicySizes(settings)
    for obj in (large, small, _named("small", 0, namespace="other")):
        sizes.put(ref_of(obj), obj)
    sizes.settle()
    assert sizes.problem_of(ref_of(small)) is None
    problem = sizes.problem_of(ref_of(large))
    assert problem is not None
    assert problem.code is POLICY_TOO_LARGE
    sizes.put(ref_of(large), small)  # it counts now, and `large` comes before `small`
    assert sizes.settle() == {ref_of(small)}


def test_admission_refuses_what_grows_beyond_the_limit() -> None:
    first, second = _named("a", 0), _named("b", 1)
    sizes = PolicySizes(Settings(namespace_limit=Size(size_of(first))))
    sizes.put(ref_of(first), first)
    assert sizes.problem_with(ref_of(first), first) is None
    problem = sizes.problem_with(ref_of(second), second)
    assert problem is not None
    assert problem.code is NAMESPACE_TOO_LARGE
    sizes.put(ref_of(second), second)  # it exists anyway
    assert sizes.problem_with(ref_of(second), second) is None
    assert sizes.problem_with(ref_of(second), _named("b", 1, accounts=2)) is not None
    assert sizes.problem_with(PolicyRef("ClusterAuthorizationPolicy", None, "c", GROUP), _named("c", 1)) is None


# Policies beyond a limit


@pytest.mark.parametrize("shape", LARGE)
def test_a_policy_beyond_a_limit_is_no_policy_for_any_reader(shape: str) -> None:
    """It closes its targets, and so does the shortened policy for any later reader."""
    obj = LARGE[shape]("shop", "big", 100_000)
    problem = policy_problem(size_of(obj), Settings(policy_limit=Size(1)))
    document = document_of(relevant(obj), beyond=problem)
    manifests = sort_documents([document], Settings(), Reporter())
    assert [error.code for error in manifests.reporter.errors] == [POLICY_TOO_LARGE]
    assert not manifests.policies
    assert [fault.reason for fault in manifests.faults] == [FaultReason.POLICY]
    assert _targets_of(manifests.enforced_policies[0]) == _targets_of(_rejected(obj))
    left = content_of(document)
    assert isinstance(left, dict)
    assert len(msgspec.json.encode(left)) < 2_000
    again = read_plain([left], Settings())
    assert again.reporter.errors
    assert not again.policies


def _rejected(obj: dict[str, Any]) -> object:
    """Return the policy that closes the targets of an object because of another error."""
    document = document_of(relevant({**obj, "spec": {**obj["spec"], "unknown": 1}}))
    return sort_documents([document], Settings(), Reporter()).enforced_policies[0]


def _targets_of(closing: object) -> tuple[object, ...]:
    assert isinstance(closing, RejectedPolicy)
    return closing.targets


def test_a_policy_beyond_the_limit_of_its_namespace_closes_its_targets() -> None:
    obj = _named("small", 0)
    sizes = PolicySizes(Settings(namespace_limit=Size(1)))
    sizes.put(ref_of(obj), obj)
    sizes.settle()
    document = document_of(relevant(obj), beyond=sizes.problem_of(ref_of(obj)))
    (closing,) = sort_documents([document], Settings(), Reporter()).enforced_policies
    (target,) = _targets_of(closing)
    assert isinstance(target, PodsMatching)


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: spec | {"targetRefs": [{"kind": "Pod", "selector": {"matchLabels": {"app": "a" * 5_000}}}]},
        lambda _spec: {f"field{number}": 1 for number in range(1_000)},
        lambda _spec: "a" * 5_000,
    ],
    ids=["targets", "fields", "text"],
)
def test_targets_that_are_too_large_are_all_of_the_namespace(change: Callable[[Any], Any]) -> None:
    obj = policy("shop", "cart", ["web"])
    obj["spec"] = change(obj["spec"])
    document = document_of(relevant(obj), beyond=policy_problem(2, Settings(policy_limit=Size(1))))
    (closing,) = sort_documents([document], Settings(), Reporter()).enforced_policies
    assert _targets_of(closing) == (Everything("shop"),)


# Settings


@pytest.mark.parametrize(("text", "size"), [("65536", 65536), ("512Ki", 512 << 10), ("8Mi", 8 << 20), ("1Gi", 1 << 30)])
def test_sizes_are_written_as_kubernetes_does(text: str, size: int) -> None:
    settings = Settings.from_mapping({"policyLimit": text})
    assert settings.policy_limit == size
    assert Settings.from_mapping({"policyLimit": settings.to_json()["policyLimit"]}) == settings


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5Mi", "1MB", "1 Mi", "many", "9" * 40])
def test_other_sizes_are_no_setting(text: str) -> None:
    with pytest.raises(SettingsError, match="number of bytes"):
        Settings.from_mapping({"namespaceLimit": text})
