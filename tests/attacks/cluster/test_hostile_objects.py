"""An object of a user must not stop the controller from reading other objects, nor be read as another object."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from eastgate.authority.sources.batches import Batch, ClusterChanges
from eastgate.authority.sources.documents import relevant
from eastgate.authority.sources.following import ClusterFollower
from eastgate.authority.sources.needs import NeededObjects, NeedIndex
from eastgate.authority.sources.source import ClusterSource
from eastgate.dialects.rejected import RejectedPolicy
from eastgate.reading.kubernetes import Put, Resource, connect
from eastgate.reading.kubernetes.depth import cut_depth
from eastgate.reading.manifests import Node
from eastgate.reading.manifests.rendered import RenderedObject
from eastgate.settings import Settings
from tests.authority.sources.objects import DEFINITIONS
from tests.programs import ApiServer

FILTERS = "networking.istio.io/v1alpha3"
FILTER_DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "envoyfilters.networking.istio.io"},
    "spec": {
        "group": "networking.istio.io",
        "scope": "Namespaced",
        "names": {"kind": "EnvoyFilter", "plural": "envoyfilters", "singular": "envoyfilter"},
        "versions": [
            {
                "name": "v1alpha3",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"a": 1}
    for _ in range(levels):
        value = {"a": value}
    return value


def envoy_filter(spec: object) -> dict[str, Any]:
    return {"apiVersion": FILTERS, "kind": "EnvoyFilter", "metadata": {"name": "x", "namespace": "n"}, "spec": spec}


def selecting(selector: object) -> dict[str, Any]:
    return envoy_filter({"authentication": {"keys": {"apiKey": {"selector": selector}}}})


@pytest.mark.parametrize(
    "spec",
    [
        {"certificateRefs": [{"name": "x", "namespace": {"a": 1}}]},
        {"certificateRefs": [{"name": "x", "namespace": ["n"]}]},
        {"certificateRefs": [{"name": "x", "namespace": 5}]},
        {"certificateRefs": [{"name": "x", "namespace": "../../nodes"}]},
        {"certificateRefs": [{"name": "x", "kind": {"a": 1}}]},
        {"certificateRefs": [{"name": "x,metadata.namespace=kube-system"}]},
        {"certificateRefs": [None, 1, []]},
        {"clientSecretRef": "x"},
    ],
)
def test_references_that_name_nothing_are_not_followed(spec: dict[str, Any]) -> None:
    needs = NeedIndex(Settings())
    assert not needs.put(envoy_filter(spec))


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": ["a"]},
        {"matchLabels": {"a b": "c"}},
        {"matchLabels": {"a": "b,c notin (d)"}},
        {"matchLabels": {"a": 1}},
        {"matchExpressions": ["a"]},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]},
        {"matchExpressions": [{"key": "!a", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b) , c in (d"]}]},
        {"matchExpressions": [{"key": None, "operator": "Exists"}]},
        {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]},
    ],
)
def test_selectors_that_select_nothing_are_not_followed(selector: object) -> None:
    needs = NeedIndex(Settings())
    assert not needs.put(selecting(selector))


def test_valid_references_and_selectors_are_followed() -> None:
    needs = NeedIndex(Settings())
    needs.put(envoy_filter({"certificateRefs": [{"name": "web-tls"}, {"name": "a.b", "namespace": "other"}]}))
    assert needs.of("Secret") == [NeededObjects("Secret", "other", "a.b"), NeededObjects("Secret", "n", "web-tls")]
    needs.put(selecting({"matchLabels": {"a/b": "c"}, "matchExpressions": [{"key": "d", "operator": "DoesNotExist"}]}))
    assert needs.of("Secret") == [NeededObjects("Secret", None, labels="a/b=c,!d")]


def test_one_object_cannot_have_thousands_of_watches() -> None:
    needs = NeedIndex(Settings())
    needs.put(envoy_filter({"certificateRefs": [{"name": f"s{number}"} for number in range(20_000)]}))
    assert needs.of("Secret") == [NeededObjects("Secret", "n")]
    homes = [{"name": "s", "namespace": f"n{number}"} for number in range(20_000)]
    needs.put(envoy_filter({"certificateRefs": homes}))
    assert needs.of("Secret") == [NeededObjects("Secret", None)]


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("gateway.networking.x-k8s.io/v1alpha2", "AuthorizationPolicy"),
        ("authorino.kuadrant.io/v1beta3", "AuthConfig"),
        ("security.istio.io/v1", "AuthorizationPolicy"),
        ("networking.istio.io/v1alpha3", "EnvoyFilter"),
        ("argoproj.io/v1alpha1", "Rollout"),
    ],
)
@pytest.mark.parametrize("levels", [99, 120, 300, 900])
def test_deep_objects_are_errors_like_others(api_version: str, kind: str, levels: int) -> None:
    async def run() -> ClusterSource:
        source = ClusterSource(None, Settings())  # type: ignore[arg-type] # nothing is asked
        source.authority = source._build(ClusterChanges())
        group, _, version = api_version.rpartition("/")
        obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "n"}}
        source.apply(_changes(source.follower, Resource(group, version, "all", kind), {**obj, "spec": nested(levels)}))
        return source

    source = asyncio.run(run())
    assert all(isinstance(policy, RejectedPolicy) for policy in source.authority.policies)
    if kind in ("AuthorizationPolicy", "AuthConfig"):
        assert len(source.authority.policies) == 1


def _changes(follower: ClusterFollower, resource: Resource, obj: dict[str, Any]) -> ClusterChanges:

    batch = Batch()
    follower._streams[(resource, None)] = None  # type: ignore[assignment] # no task is needed
    follower.note((resource, None), Put(obj), batch)
    return follower.changes_of(batch)


@pytest.mark.parametrize("levels", [200, 298, 299, 300, 1500, 9000])
def test_cut_json_is_json(levels: int) -> None:
    deep = b'{"a":' * levels + b'"}{[]"' + b"}" * levels
    content = b'{"items":[{"n":"\\"{["},' + deep + b',{"n":[1,{"m":2}]}]}'
    read = msgspec.json.decode(cut_depth(content))
    assert read["items"][0] == {"n": '"{['}
    assert read["items"][2] == {"n": [1, {"m": 2}]}


@pytest.mark.parametrize(
    "text",
    [
        *("1e3", "1E5", "4e12", "1.e3", "0o17", "0o_7", "+.5", "08", "09", "007", "1e-5", "6.02E23", "0x1f", "1_000"),
        *("1:30", "2001-01-01", "-.inf", "-", "+", ".", "..", "y", "n", "on", "~", "null", "", "=", "<<", "a" * 300),
    ],
)
def test_texts_stay_texts(text: str) -> None:
    data = {"spec": {"value": text, "values": [text], "labels": {text or "k": text}}}
    assert _plain(RenderedObject("x", data).node()) == data


@pytest.mark.parametrize("number", [0, -1, 8, 1.5, 1e20, 1e-7, 2**63, True])
def test_numbers_stay_numbers(number: object) -> None:
    value = _plain(RenderedObject("x", {"spec": number}).node())["spec"]
    assert (value, type(value)) == (number, type(number))


def _plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: _plain(value) for key, value in node.items()}
    return [_plain(item) for item in node] if isinstance(node.value, list) else node.value


def test_relevant_keeps_fields_that_may_be_read() -> None:
    obj = envoy_filter(nested(50))
    assert relevant(obj) == obj


@pytest.mark.apiserver
def test_the_controller_starts_beside_hostile_objects(own_api_server: ApiServer) -> None:
    server = own_api_server
    namespace = server.namespace("hostile")
    server.create(DEFINITIONS, FILTER_DEFINITION)
    path = f"/apis/{FILTERS}/namespaces/{namespace}/envoyfilters"
    server.wait_until(lambda: server.request("GET", path)[0] == 200)
    deep = msgspec.Raw(b'{"a":' * 5000 + b"1" + b"}" * 5000)

    async def run() -> None:
        async with connect(server.kubeconfig) as connection, asyncio.timeout(60):
            for number, spec in enumerate((deep, selecting({"matchLabels": {"a b": "c d,(("}})["spec"])):
                body = {**envoy_filter(spec), "metadata": {"name": f"f{number}"}}
                headers = {"Content-Type": "application/json"}
                created = await connection._client.post(path, content=msgspec.json.encode(body), headers=headers)
                assert created.status_code == 201
            async with ClusterSource(connection, Settings()) as source:
                assert namespace in source.authority.world.namespaces

    asyncio.run(run())
