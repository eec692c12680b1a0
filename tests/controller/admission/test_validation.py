"""Validation: the diagnostics of the dialects in the form that an API server passes on."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from eastgate import Settings
from eastgate.authority.sources.sizes import size_of
from eastgate.controller.admission.changes import (
    AdmissionJudgement,
    AdmissionRefusal,
    ChangeOperation,
    RequestedChange,
    answer_to,
    change_of,
)
from eastgate.controller.admission.reviews import MalformedReviewError
from eastgate.controller.admission.validation import judge_object, limit_refusals, limit_warnings
from eastgate.settings import Size
from tests.controller.admission.reviews import GROUP, Manifest, admission_review, policy, rules
from tests.reports.crds.corpus import samples


def judged(review: Manifest, settings: Settings | None = None) -> AdmissionJudgement:
    return judge_object(change_of(review)[1], settings or Settings())


def test_a_valid_policy_is_allowed() -> None:
    assert judged(admission_review(policy(rules([{}])))) == AdmissionJudgement()


def test_errors_name_the_code_the_field_and_the_way_out() -> None:
    broken = policy(rules([{"authorizationSource": {"serviceAccounts": ["*"]}}, {"ports": [1]}]))
    said = judged(admission_review(broken))
    assert said.refusals == (
        AdmissionRefusal(
            "EG2025 `*` alone is not a service account; "
            "write <namespace>/* for each namespace, or leave the source out to match any caller",
            "spec.rules[0].authorizationSource.serviceAccounts[0]",
        ),
        AdmissionRefusal(
            "EG1201 unknown field `ports` in a rule; write networkAttributes: {ports: [..]}",
            "spec.rules[1].ports",
        ),
    )


def test_the_answer_has_a_cause_for_each_refusal() -> None:
    review = admission_review(policy(rules("none")))
    uid, change = change_of(review)
    response = answer_to(uid, change, judge_object(change, Settings()))["response"]
    assert (response["uid"], response["allowed"]) == ("u", False)
    status = response["status"]
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["details"]["kind"] == "AuthorizationPolicy"
    assert [cause["field"] for cause in status["details"]["causes"]] == ["spec.rules"]
    assert status["message"].startswith("spec.rules: EG")


def test_annotations_are_named_as_the_server_names_them() -> None:
    said = judged(admission_review(policy(rules([{}]), annotations={"eastgate.dev/mode": "off"})))
    assert [refusal.field for refusal in said.refusals] == ["metadata.annotations[eastgate.dev/mode]"]


def test_findings_of_lint_are_warnings_with_code_and_field() -> None:
    methods = {"applicationAttributes": {"methods": ["get"]}}
    spec = rules([methods, {"networkAttributes": {"ports": []}}]) | {"enforcementLevel": "APPLICATION"}
    said = judged(admission_review(policy(spec)))
    assert said.refusals == ()
    assert said.warnings == (
        "EG2034 spec.rules[0].applicationAttributes.methods[0]: `get` does not match GET",
        "EG6020 spec.rules[1].networkAttributes.ports: "
        "AuthorizationPolicy/shop/p rule 1 matches nothing: this list is empty",
    )


def test_a_name_that_the_server_will_generate_is_no_error() -> None:
    review = admission_review(policy(rules([{}])))
    review["request"]["object"]["metadata"] = {"generateName": "p-"}
    review["request"]["name"] = ""
    assert judged(review) == AdmissionJudgement()


def test_the_namespace_of_the_request_counts() -> None:
    review = admission_review(policy(rules([{"networkAttributes": {"ports": []}}])))
    del review["request"]["object"]["metadata"]["namespace"]
    assert "AuthorizationPolicy/shop/p" in judged(review).warnings[0]


# Ratcheting

BROKEN = policy(rules([{"ports": [1]}]))


def test_a_change_that_keeps_the_meaning_is_not_refused() -> None:
    labelled = copy.deepcopy(BROKEN)
    labelled["metadata"]["labels"] = {"a": "b"}
    labelled["metadata"]["finalizers"] = []
    labelled["status"] = {"ancestors": []}
    said = judged(admission_review(labelled, BROKEN))
    assert said.refusals == ()
    assert said.warnings == ("EG1201 spec.rules[0].ports: unknown field `ports` in a rule",)


def test_a_new_error_in_the_metadata_is_refused_all_the_same() -> None:
    worse = copy.deepcopy(BROKEN)
    worse["metadata"]["annotations"] = {"eastgate.dev/mode": "off"}
    assert judged(admission_review(worse, BROKEN)).refusals


def test_a_change_of_the_spec_is_refused_for_old_errors_too() -> None:
    changed = copy.deepcopy(BROKEN)
    changed["spec"]["action"] = "DENY"
    assert judged(admission_review(changed, BROKEN)).refusals


def test_an_object_that_is_being_deleted_is_refused_only_for_new_errors() -> None:
    going, worse, odd = (copy.deepcopy(BROKEN) for _ in range(3))
    for each in (going, worse, odd):
        each["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    worse["spec"]["action"] = "PERHAPS"
    odd["spec"]["rules"] = []
    assert judged(admission_review(going, BROKEN)).refusals == ()
    assert judged(admission_review(odd, BROKEN)).refusals == ()
    assert judged(admission_review(worse, BROKEN)).refusals


def test_deletion_is_not_refused() -> None:
    review = admission_review(None, BROKEN)
    assert change_of(review)[1].operation is ChangeOperation.DELETE
    assert judged(review) == AdmissionJudgement()


def _sized(accounts: int, **metadata: Any) -> Manifest:
    names = [f"shop/web-{number:03}" for number in range(accounts)]
    return policy(rules([{"authorizationSource": {"serviceAccounts": names}}]), **metadata)


@pytest.mark.parametrize(
    ("new", "old", "is_refused"),
    [
        (_sized(20), None, False),
        (_sized(21), None, True),
        (_sized(22), _sized(21), True),
        (_sized(21), _sized(22), False),
        (_sized(21, labels={"a": "b"}), _sized(21), False),
        (_sized(22, deletionTimestamp="2026-01-01T00:00:00Z"), _sized(21), False),
    ],
    ids=["as large as it may be", "too large", "larger", "smaller", "labelled", "being deleted"],
)
def test_a_policy_that_is_too_large_is_refused_if_it_grows(
    new: Manifest, old: Manifest | None, is_refused: bool
) -> None:
    settings = Settings(policy_limit=size_of(_sized(20)))
    refusals = judged(admission_review(new, old), settings).refusals
    assert [refusal.message[:6] for refusal in refusals] == (["EG0142"] if is_refused else [])


def test_a_policy_that_is_too_large_is_not_read() -> None:
    """Its errors are not reported, since reading it would take too long."""
    settings = Settings(policy_limit=Size(100))
    said = judged(admission_review(BROKEN), settings)
    assert [refusal.message[:6] for refusal in said.refusals] == ["EG0142"]


# Kinds


def test_errors_in_routes_are_warnings() -> None:
    route = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "r", "namespace": "shop"},
        "spec": {"rules": "none"},
    }
    said = judged(admission_review(route))
    assert said.refusals == ()
    assert len(said.warnings) == 1
    assert "spec.rules" in said.warnings[0]


def test_a_version_that_is_not_read_is_allowed_with_a_warning() -> None:
    later = policy({"what": "ever"}) | {"apiVersion": f"{GROUP}/v9"}
    said = judged(admission_review(later))
    assert said.refusals == ()
    assert said.warnings == (f"Eastgate does not read AuthorizationPolicy of {GROUP}/v9, only v1alpha1 and v1alpha2",)


def test_other_kinds_are_not_validated() -> None:
    other = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    assert judged(admission_review(other)) == AdmissionJudgement()


def test_subresources_are_not_validated() -> None:
    review = admission_review(BROKEN)
    review["request"]["subResource"] = "status"
    assert judged(review) == AdmissionJudgement()


def test_the_policy_in_an_annotation_is_validated_too() -> None:
    from eastgate.controller.admission.conversion import convert_object

    stored = convert_object(BROKEN, f"{GROUP}/v1alpha1")
    fields = [refusal.field for refusal in judged(admission_review(stored)).refusals]
    assert fields == ["v1alpha2:spec.rules[0].ports"]


def test_every_policy_of_the_tree_is_judged_as_files_are() -> None:
    for sample in samples():
        settings = Settings.from_mapping({"meshMode": str(sample.mode)})
        review = admission_review(sample.manifest)
        said = judge_object(change_of(review)[1], settings)
        assert bool(said.refusals) == bool(sample.errors), (sample.name, said)
        codes = {refusal.message.partition(" ")[0] for refusal in said.refusals}
        assert codes == {error.code.id for error in sample.errors}, sample.name


# Limits


def test_warnings_are_cut_to_the_limits_of_the_api_server() -> None:
    kept = limit_warnings([f"{number} {'x' * 300}\n" for number in range(50)])
    assert all(len(warning) <= 256 and warning.isprintable() for warning in kept)
    assert sum(map(len, kept)) < 4096
    assert kept[-1].endswith("more: see `eastgate lint` and `eastgate diff`")
    assert limit_warnings(["a", "a", "b"]) == ("a", "b")


def test_refusals_are_cut() -> None:
    kept = limit_refusals(AdmissionRefusal(str(number)) for number in range(100))
    assert len(kept) == 33
    assert kept[-1].message == "and 68 more"


# Malformed reviews


def without(*path: str) -> Manifest:
    review = admission_review(BROKEN, BROKEN)
    inner: Any = review
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    return review


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        "review",
        without("kind"),
        without("apiVersion"),
        without("request"),
        without("request", "uid"),
        without("request", "operation"),
        without("request", "kind"),
        without("request", "kind", "kind"),
        without("request", "object"),
        without("request", "oldObject"),
    ],
)
def test_an_invalid_review_is_malformed(broken: Any) -> None:
    with pytest.raises(MalformedReviewError):
        change_of(broken)


def test_dry_run_and_user_are_known() -> None:
    review = admission_review(BROKEN)
    review["request"] |= {"dryRun": True, "userInfo": {"username": "ana"}}
    change: RequestedChange = change_of(review)[1]
    assert (change.dry_run, change.user) == (True, "ana")


def test_the_largest_policies_are_judged_quickly_enough() -> None:
    """Slow checks are skipped: the search for each account, and lint of large objects."""
    accounts = [{"authorizationSource": {"serviceAccounts": [f"n{i}/a{j}" for j in range(100)]}} for i in range(256)]
    assert judged(admission_review(policy(rules(accounts)))) == AdmissionJudgement()
    broken = judged(admission_review(policy(rules([{"x": number} for number in range(3000)]))))
    assert len(broken.refusals) == 64
