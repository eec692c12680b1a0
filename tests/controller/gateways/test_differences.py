"""The writes that lead to the wanted objects, for objects in the form of an API server."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from eastgate.controller.gateways.objects import compare_objects, gateway_objects, is_fulfilled, key_of
from eastgate.controller.gateways.parameters import GatewayParameters
from eastgate.controller.gateways.pods import ProxySetup
from tests.controller.gateways.manifests import gateway

OWNER = "uid-of-gw"
WANTED = gateway_objects(gateway(), {80}, ProxySetup({}), GatewayParameters("envoy:v1", max_replicas=3))


def _stored(entry: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """Return an object in the form of the API server: with more fields than were written."""
    stored = copy.deepcopy(entry)
    stored["metadata"] |= {"uid": f"uid-{entry['kind']}", "resourceVersion": "7", **metadata}
    stored["status"] = {"observed": True}
    return stored


def _kinds(entries: Any) -> list[str]:
    return [entry["kind"] for entry in entries]


def test_a_missing_object_is_created() -> None:
    changes = compare_objects(WANTED, [], OWNER)
    assert list(changes.create) == WANTED
    assert (changes.update, changes.delete, changes.foreign) == ((), (), ())


def test_a_correct_object_is_not_changed() -> None:
    assert not compare_objects(WANTED, [_stored(entry) for entry in WANTED], OWNER)


def test_unwanted_own_objects_are_deleted_and_objects_of_other_owners_stay() -> None:
    stored = [_stored(entry) for entry in WANTED]
    foreign = _stored(WANTED[1], ownerReferences=[], name="another")
    leaving = _stored(WANTED[2], name="leaving", deletionTimestamp="2026-01-01T00:00:00Z")
    wanted = [entry for entry in WANTED if entry["kind"] != "HorizontalPodAutoscaler"]
    assert _kinds(compare_objects(wanted, [*stored, foreign, leaving], OWNER).delete) == ["HorizontalPodAutoscaler"]


@pytest.mark.parametrize("kind", [entry["kind"] for entry in WANTED if entry["kind"] != "ServiceAccount"])
@pytest.mark.parametrize("owners", [[], [{"uid": "another", "controller": True}], [{"uid": OWNER}]])
def test_an_object_of_another_owner_is_not_touched(kind: str, owners: list[dict[str, Any]]) -> None:
    stored = [
        _stored(entry, ownerReferences=owners, labels={}) if entry["kind"] == kind else _stored(entry)
        for entry in WANTED
    ]
    changes = compare_objects(WANTED, stored, OWNER)
    assert not changes
    assert [key[0] for key in changes.foreign] == [kind]


def test_no_pods_get_the_account_of_another_owner() -> None:
    account = _stored(WANTED[0], ownerReferences=[])
    changes = compare_objects(WANTED, [account], OWNER)
    assert changes.foreign == (("ServiceAccount", "edge", "gw"),)
    assert "Deployment" not in _kinds(changes.create)


def test_running_pods_stay_after_a_replacement_of_the_account() -> None:
    stored = [_stored(entry) for entry in WANTED[1:]] + [_stored(WANTED[0], ownerReferences=[])]
    assert not compare_objects(WANTED, stored, OWNER)


def test_an_update_is_of_the_object_that_was_seen() -> None:
    stored = [_stored(entry) for entry in WANTED]
    stored[1]["spec"]["type"] = "NodePort"
    (update,) = compare_objects(WANTED, stored, OWNER).update
    assert (update["kind"], update["metadata"]["uid"]) == ("Service", "uid-Service")
    assert key_of(update) == key_of(WANTED[1])


@pytest.mark.parametrize(
    ("field", "wanted", "current", "fulfilled"),
    [
        ("", {"a": 1}, {"a": 1, "b": 2}, True),
        ("", {"a": 1}, {"b": 2}, False),
        ("", {"a": {"b": 1}}, {"a": None}, False),
        ("", {"a": False}, {"a": True}, False),
        ("args", ["a", "b"], ["a", "b"], True),
        ("args", ["a", "b"], ["a", "b", "c"], False),
        ("args", ["a", "b"], ["b", "a"], False),
        ("containers", [{"name": "a", "image": "x"}], [{"name": "b"}, {"name": "a", "image": "x", "tty": False}], True),
        ("containers", [{"name": "a", "image": "x"}], [{"name": "a", "image": "y"}], False),
        ("containers", [{"name": "a", "image": "x"}], [], False),
        ("ports", [{"port": 80, "protocol": "TCP"}], [{"port": 80, "protocol": "TCP", "nodePort": 30000}], True),
        ("ports", [{"port": 80, "protocol": "TCP"}], [{"port": 80, "protocol": "UDP"}], False),
        ("requests", {"cpu": "1000m", "memory": "1Gi"}, {"cpu": "1", "memory": "1024Mi"}, True),
        ("requests", {"cpu": "1000m"}, {"cpu": "100m"}, False),
        ("requests", {"cpu": "1"}, {"cpu": "odd"}, False),
        ("requests", {"cpu": "1"}, {"cpu": "1x"}, False),
    ],
)
def test_fulfilled(field: str, wanted: Any, current: Any, fulfilled: bool) -> None:
    assert is_fulfilled(wanted, current, field) is fulfilled


def test_a_field_that_is_wanted_no_more_shows_in_the_digest() -> None:
    before = gateway_objects(
        gateway(infrastructure={"labels": {"a": "b"}}), {80, 81}, ProxySetup({}), GatewayParameters("e")
    )
    after = gateway_objects(gateway(), {80}, ProxySetup({}), GatewayParameters("e"))
    changes = compare_objects(after, [_stored(entry) for entry in before], OWNER)
    assert _kinds(changes.update) == ["ServiceAccount", "Service", "Deployment", "PodDisruptionBudget"]
