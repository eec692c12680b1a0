"""Conversion between versions: it is lossless, never widens a policy, and has a form for every stored object."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from eastgate import Settings
from eastgate.controller.admission.conversion import ConversionError, answer_conversion, convert_object
from eastgate.controller.admission.conversion.objects import NARROWED, original_in, spec_annotation
from eastgate.controller.admission.reviews import MalformedReviewError
from eastgate.reach.comparison import DoubtReason
from eastgate.reach.differences import compare
from eastgate.settings import MeshMode
from tests.controller.admission.neighbours import LABELS, neighbours
from tests.convert.crowds import crowds, pod
from tests.reports.crds.api_server import refusals
from tests.reports.crds.corpus import samples
from tests.worlds import generate
from tests.worlds.test_generated_clusters import authority_of, situations

Manifest = dict[str, Any]
GROUP = "gateway.networking.x-k8s.io"
OLD, NEW = f"{GROUP}/v1alpha1", f"{GROUP}/v1alpha2"


def other(version: str) -> str:
    return NEW if version == OLD else OLD


def is_convertible(manifest: Manifest) -> bool:
    return manifest["apiVersion"] in (OLD, NEW) and manifest["kind"] == "AuthorizationPolicy"


def policy(spec: Any, version: str = NEW, **metadata: Any) -> Manifest:
    named = {"name": "p", "namespace": "shop", **metadata}
    return {"apiVersion": version, "kind": "AuthorizationPolicy", "metadata": named, "spec": spec}


def pods(**labels: str) -> Manifest:
    return {"kind": "Pod", "selector": {"matchLabels": labels} if labels else {}}


def service(name: str) -> Manifest:
    return {"kind": "Service", "name": name}


def old_form(spec: Any) -> Manifest:
    return convert_object(policy(spec), OLD)


def notes_of(manifest: Manifest) -> Manifest:
    return dict(manifest["metadata"].get("annotations", {}))


# Forms

CALLER = {"authorizationSource": {"serviceAccounts": ["x"]}}


def test_a_policy_that_both_versions_can_express_is_converted_without_annotations() -> None:
    rule = {"authorizationSource": {"serviceAccounts": ["a/x"]}, "networkAttributes": {"ports": [80]}}
    original = policy({"targetRefs": [pods(app="web")], "action": "ALLOW", "rules": [rule]})
    converted = convert_object(original, OLD)
    assert converted["spec"] == {
        "targetRefs": pods(app="web"),
        "action": "ALLOW",
        "tcpRules": [{"sources": [{"serviceAccounts": ["a/x"]}], "attributes": [{"ports": [80]}]}],
    }
    assert "annotations" not in converted["metadata"]
    assert convert_object(converted, NEW) == original


def test_targets_that_differ_in_one_label_are_one_selector() -> None:
    spec = {"targetRefs": [pods(app="a", tier="1"), pods(app="b", tier="1")], "action": "DENY", "rules": [CALLER]}
    converted = old_form(spec)
    values = {"app": ["a", "b"], "tier": ["1"]}
    expressions = [{"key": key, "operator": "In", "values": value} for key, value in values.items()]
    assert converted["spec"]["targetRefs"]["selector"] == {"matchExpressions": expressions}
    assert converted["spec"]["tcpRules"] == [{"sources": [{"serviceAccounts": ["shop/x"]}]}]
    assert NARROWED not in notes_of(converted)


def test_a_target_that_covers_the_others_replaces_them() -> None:
    spec = {"targetRefs": [pods(app="a"), pods(app="a", tier="1")], "action": "ALLOW", "rules": [{}]}
    assert NARROWED not in notes_of(old_form(spec))
    spec["targetRefs"] = [service("s"), pods()]
    assert old_form(spec)["spec"] == {
        "targetRefs": {"group": "", **pods()},
        "action": "ALLOW",
        "tcpRules": [{}],
    }


EVERY_POD = {"group": "", **pods()}


@pytest.mark.parametrize(
    ("spec", "form", "why"),
    [
        (
            {"targetRefs": [pods(app="a"), pods(tier="1")], "action": "ALLOW", "rules": [CALLER]},
            {"targetRefs": EVERY_POD, "action": "ALLOW", "tcpRules": []},
            "one target",
        ),
        (
            {"targetRefs": [pods(app="a"), service("s")], "action": "DENY", "rules": [CALLER]},
            {"targetRefs": EVERY_POD, "action": "DENY", "tcpRules": [{}]},
            "one target",
        ),
        (
            {"targetRefs": [pods(app="a")], "action": "ALLOW", "enforcementLevel": "Application", "rules": [{}]},
            {
                "targetRefs": pods(app="a"),
                "action": "DENY",
                "tcpRules": [{}],
            },
            "APPLICATION",
        ),
        (
            {"targetRefs": [pods(app="a")], "action": "ALLOW", "rules": "all of them"},
            {"targetRefs": EVERY_POD, "action": "DENY", "tcpRules": [{}]},
            "has errors",
        ),
        (None, {"targetRefs": EVERY_POD, "action": "DENY", "tcpRules": [{}]}, "has errors"),
    ],
)
def test_a_policy_that_the_old_version_cannot_express_denies_more_and_is_annotated(
    spec: Any, form: Manifest, why: str
) -> None:
    original = policy(spec)
    converted = convert_object(original, OLD)
    assert converted["spec"] == form
    assert why in notes_of(converted)[NARROWED]
    assert refusals(converted, MeshMode.SIDECAR) == []
    back = convert_object(converted, NEW)
    assert back.get("spec") == spec
    assert "annotations" not in back["metadata"]
    edited = copy.deepcopy(converted)
    edited["spec"]["tcpRules"] = [{"attributes": [{"ports": [1]}]}]
    assert convert_object(edited, NEW)["spec"]["rules"] == [{"networkAttributes": {"ports": [1]}}]


def test_an_annotation_of_another_policy_is_not_believed() -> None:
    wide = {"targetRefs": [pods()], "action": "ALLOW", "rules": [{}]}
    narrow = {"targetRefs": pods(app="a"), "action": "ALLOW", "tcpRules": []}
    for text in (json.dumps(wide), "{", "[" * 100_000, "null", "3"):
        forged = policy(narrow, OLD, annotations={spec_annotation("v1alpha2"): text, "else": "stays"})
        converted = convert_object(forged, NEW)
        assert converted["spec"] == {"targetRefs": [pods(app="a")], "action": "ALLOW", "rules": []}
        assert notes_of(converted) == {"else": "stays"}


def test_an_annotation_of_another_namespace_is_not_believed() -> None:
    spec = {"targetRefs": [pods()], "action": "ALLOW", "enforcementLevel": "NETWORK", "rules": [CALLER]}
    copied = old_form(spec)
    copied["metadata"]["namespace"] = "elsewhere"
    accounts = convert_object(copied, NEW)["spec"]["rules"][0]["authorizationSource"]["serviceAccounts"]
    assert accounts == ["shop/x"]


def test_status_and_metadata_stay() -> None:
    original = policy({"targetRefs": [pods()], "action": "ALLOW"}, labels={"a": "b"}, uid="1", finalizers=["f"])
    original["status"] = {"ancestors": []}
    converted = convert_object(original, OLD)
    assert converted["metadata"] == original["metadata"]
    assert converted["status"] == original["status"]


def test_how_something_large_was_written_may_be_lost_and_nothing_else() -> None:
    sources = [{"identities": [f"spiffe://td/{'x' * 1800}/{number}"]} for number in range(200)]
    spec = {"targetRefs": pods(), "action": "ALLOW", "tcpRules": [{"sources": sources}]}
    converted = convert_object(policy(spec, OLD), NEW)
    assert "annotations" not in converted["metadata"]
    again = convert_object(convert_object(converted, OLD), NEW)
    assert again["spec"] == converted["spec"]


# Reviews


def review(objects: list[Any], version: str = OLD) -> Manifest:
    request = {"uid": "u", "desiredAPIVersion": version, "objects": objects}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


def test_a_bad_object_does_not_fail_the_others() -> None:
    good = policy({"targetRefs": [pods()], "action": "ALLOW"})
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    objects = [good, policy({"rules": deep}), policy(7), {**good, "spec": None}, good]
    answer = answer_conversion(review(objects))["response"]
    assert answer["uid"] == "u"
    assert answer["result"] == {"status": "Success"}
    assert [converted["apiVersion"] for converted in answer["convertedObjects"]] == [OLD] * len(objects)
    assert answer["convertedObjects"][0] == convert_object(good, OLD)


HOSTILE = (
    "NaN",
    '{"targetRefs": NaN}',
    '{"targetRefs": -Infinity}',
    '{"targetRefs": 1e999}',
    '{"targetRefs": ' + "9" * 30 + "}",
    '{"targetRefs": ' + "9" * 5000 + "}",
    '{"action": "DENY", "action": "ALLOW"}',
    '{"action": "\\ud800"}',
    '{"rules": ' + "[" * 5000 + "]" * 5000 + "}",
    '{"rules": ' + "[" * 40 + "]" * 40 + "}",
    "5",
    "[]",
    "{",
    "",
)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("version", [OLD, NEW])
def test_an_annotation_that_is_no_json_of_an_object_is_void(text: str, version: str) -> None:
    closed = convert_object(policy({"rules": 7}, version), other(version))
    held = spec_annotation(version.rpartition("/")[2])
    assert held in notes_of(closed)
    hostile = {**closed, "metadata": {**closed["metadata"], "annotations": {held: text}}}
    answer = answer_conversion(review([closed, hostile], version))["response"]
    assert answer["result"] == {"status": "Success"}
    first, second = json.loads(json.dumps(answer["convertedObjects"], allow_nan=False))
    assert first["spec"] == {"rules": 7}
    assert second["spec"] == convert_object({**closed, "metadata": {"name": "p", "namespace": "shop"}}, version)["spec"]
    assert original_in(hostile) is None


def test_there_is_no_conversion_of_other_kinds() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {}}
    answer = answer_conversion(review([pod]))["response"]
    assert answer["result"]["status"] == "Failure"
    with pytest.raises(ConversionError):
        convert_object(policy({}), f"{GROUP}/v1")


@pytest.mark.parametrize("broken", [None, [], {}, {"kind": "ConversionReview"}, review([]) | {"request": {"uid": "u"}}])
def test_an_invalid_review_is_malformed(broken: Any) -> None:
    with pytest.raises(MalformedReviewError):
        answer_conversion(broken)


# Round trips

versions = st.booleans().flatmap(
    lambda old: (
        generate.v1alpha1("p") if old else generate.v1alpha2("p", ambient=False) | generate.v1alpha2("p", ambient=True)
    )
)


def as_stored(manifest: Manifest) -> Manifest:
    """Return the stored form: an API server has one target in v1alpha1, where a file may have a list."""
    targets = manifest["spec"]["targetRefs"]
    if manifest["apiVersion"] == OLD and isinstance(targets, list):
        return {**manifest, "spec": {**manifest["spec"], "targetRefs": targets[0]}}
    return manifest


@settings(max_examples=400, deadline=None)
@given(versions)
def test_round_trips_are_identical(written: Manifest) -> None:
    original = as_stored(written)
    there = convert_object(original, other(original["apiVersion"]))
    event("narrowed" if NARROWED in notes_of(there) else "the same")
    assert refusals(there, MeshMode.SIDECAR) == []
    assert convert_object(there, original["apiVersion"]) == original
    assert convert_object(there, there["apiVersion"]) == there
    again = convert_object(convert_object(there, original["apiVersion"]), there["apiVersion"])
    assert again == there


@settings(max_examples=200, deadline=None)
@given(versions, st.dictionaries(st.sampled_from("abc"), st.text(max_size=3)))
def test_an_edit_of_metadata_in_between_changes_nothing_else(written: Manifest, labels: dict[str, str]) -> None:
    original = as_stored(written)
    there = convert_object(original, other(original["apiVersion"]))
    there["metadata"]["labels"] = labels
    back = convert_object(there, original["apiVersion"])
    assert back["metadata"]["labels"] == labels
    assert back["spec"] == original["spec"]


@settings(max_examples=200, deadline=None)
@given(versions, versions)
def test_an_edit_of_the_spec_in_between_counts_as_it_is_written(written: Manifest, edit: Manifest) -> None:
    original = as_stored(written)
    there = convert_object(original, other(original["apiVersion"]))
    edit = as_stored(edit)
    assume(edit["apiVersion"] == there["apiVersion"] and edit["spec"] != there["spec"])
    edited = {**there, "spec": edit["spec"]}
    bare = {**edited, "metadata": {"name": "p", "namespace": there["metadata"]["namespace"]}}
    back = convert_object(edited, original["apiVersion"])
    assert back["spec"] == convert_object(bare, original["apiVersion"])["spec"]
    assert convert_object(back, there["apiVersion"])["spec"] == edit["spec"]


@settings(max_examples=300, deadline=None)
@given(versions, st.data())
def test_every_stored_object_has_a_form_and_converts_back(written: Manifest, data: st.DataObject) -> None:
    finite = st.floats(allow_nan=False, allow_infinity=False)  # an API server only stores objects of such values
    junk = st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | finite | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
        max_leaves=5,
    )
    original = as_stored(written)
    spec = original["spec"]
    broken = spec | {data.draw(st.sampled_from([*spec, "more"])): data.draw(junk)} if data.draw(st.booleans()) else None
    anything = st.dictionaries(st.text(max_size=5), junk, max_size=3)
    stored = {**original, "spec": data.draw(anything) if broken is None else broken}
    there = convert_object(stored, other(stored["apiVersion"]))
    assert refusals(there, MeshMode.SIDECAR) == []
    back = convert_object(there, stored["apiVersion"])
    assert json.dumps(back.get("spec"), sort_keys=True) == json.dumps(stored["spec"], sort_keys=True)


def test_every_policy_of_the_tree_comes_back() -> None:
    storable = {"apiVersion", "kind", "metadata", "spec", "status"}  # other values are refused
    chosen = [
        sample.manifest
        for sample in samples()
        if is_convertible(sample.manifest)
        and sample.manifest.keys() <= storable
        and isinstance(sample.manifest.get("spec", {}), dict)
    ]
    assert len(chosen) > 200
    for manifest in chosen:
        there = convert_object(manifest, other(manifest["apiVersion"]))
        assert refusals({**there, "metadata": {"name": "p", "namespace": "a"}}, MeshMode.SIDECAR) == []
        assert convert_object(there, manifest["apiVersion"]).get("spec") == manifest.get("spec")


# Never wider


def allowed_at_once(manifest: Manifest) -> bool:
    """Return whether a policy allows at NETWORK in the Admin tier, which no policy of a namespace can override."""
    spec = manifest.get("spec", {})
    return bool(
        manifest["kind"] == "ClusterAuthorizationPolicy"
        and spec["tier"] == "Admin"
        and spec["action"] == "ALLOW"
        and str(spec.get("enforcementLevel", "network")).lower() == "network"
    )


def denies_more(manifests: list[Manifest], version: str, chosen: Settings) -> bool:
    """Assert that the forms of policies together allow nothing more; return whether one denies more."""
    forms = [convert_object(each, version) if is_convertible(each) else each for each in manifests]
    narrowed = any(NARROWED in notes_of(form) for form in forms)
    comparison = compare(authority_of(manifests, chosen), authority_of(forms, chosen), handshakes=False)
    for doubt in comparison.doubts:
        assert doubt.reason is DoubtReason.NOT_CONFIRMED
        assert doubt.difference is not None
        assert narrowed
        assert not doubt.difference.new.allowed
    for difference in comparison.differences:
        assert narrowed, difference
        assert not difference.new.allowed, difference
    return narrowed


@settings(max_examples=150, deadline=None)
@given(situation=neighbours() | crowds() | situations(), version=st.sampled_from([OLD, OLD, NEW]))
def test_no_form_allows_more(situation: tuple[list[Manifest], Settings], version: str) -> None:
    manifests, chosen = situation
    stored = [as_stored(each) if is_convertible(each) else each for each in manifests]
    enforced = [each for each in stored if not allowed_at_once(each) and not makes_http(each)]
    event("denies more" if denies_more(enforced, version, chosen) else "the same")


def makes_http(manifest: Manifest) -> bool:
    """Return whether a policy in audit mode makes proxies parse HTTP: at APPLICATION they refuse invalid HTTP."""
    level = str(manifest.get("spec", {}).get("enforcementLevel", ""))
    return notes_of(manifest).get("eastgate.dev/mode") == "audit" and level.lower() == "application"


def test_a_denial_that_gets_wider_does_not_end_a_baseline() -> None:
    """If only a baseline closes a pod, a DENY policy with denyOnly: allow would open the rest of it."""
    spec = {"targetRefs": [pods(app="web"), pods(tier="1")], "action": "DENY", "rules": [CALLER]}
    closed = {"tier": "Baseline", "priority": 1, "action": "DENY", "rules": [{}]}
    manifests = [
        *(pod(f"p{number}", labels, [80]) for number, labels in enumerate(LABELS)),
        policy(spec, namespace="a"),
        {
            "apiVersion": "eastgate.dev/v1alpha1",
            "kind": "ClusterAuthorizationPolicy",
            "metadata": {"name": "baseline"},
            "spec": closed,
        },
    ]
    assert denies_more(manifests, OLD, Settings.from_mapping({"denyOnly": "allow"}))
