"""The status of Gateways, listeners and routes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from eastgate.controller.gateways.routes import route_parents
from eastgate.controller.gateways.status import (
    GatewayFacts,
    GatewayProgress,
    class_status,
    gateway_status,
    service_addresses,
)
from tests.certificates import self_signed
from tests.controller.gateways.manifests import (
    NOW,
    SERVICE,
    gateway,
    reasons,
    route,
    service,
    statuses_of,
    tls_secret,
    world_of,
)

_HTTP = {"name": "http", "port": 80, "protocol": "HTTP"}
_ALL = {"namespaces": {"from": "All"}}
_LATER = "2026-02-02T00:00:00Z"
_REDIRECT = {"filters": [{"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}]}
_MIRROR = {
    "filters": [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "web", "port": 80}}}],
    "backendRefs": [{"name": "web", "port": 80}],
}
_PROGRAMMED = GatewayProgress(True)
_SELECTED = {"from": "Selector", "selector": {"matchLabels": {"a": "b"}}}
_NO_CA = "False/NoValidCACertificate"


def _https(name: str = "https", **more: Any) -> dict[str, Any]:
    return {"name": name, "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "own"}]}, **more}


# Gateways


@pytest.mark.parametrize(
    ("facts", "conditions"),
    [
        (GatewayFacts(service=SERVICE, progress=_PROGRAMMED), ("True/Accepted", "True/Programmed")),
        (GatewayFacts(service=SERVICE), ("True/Accepted", "False/Pending")),
        (GatewayFacts(progress=_PROGRAMMED), ("True/Accepted", "False/AddressNotAssigned")),
        (
            GatewayFacts(service=SERVICE, progress=_PROGRAMMED, foreign=(("ServiceAccount", "edge", "gw"),)),
            ("True/Accepted", "False/NoResources"),
        ),
        (
            GatewayFacts(parameters="no such ConfigMap", service=SERVICE, progress=_PROGRAMMED),
            ("False/InvalidParameters", "False/Invalid"),
        ),
    ],
    ids=["programmed", "pending", "no-address", "foreign", "parameters"],
)
def test_a_gateway(facts: GatewayFacts, conditions: tuple[str, str]) -> None:
    accepted, programmed = conditions
    statuses = statuses_of([gateway()], facts)
    assert statuses.gateway() == {"Accepted": accepted, "Programmed": programmed}
    listener = statuses.listener("http")
    assert listener["Programmed"] == ("True/Programmed" if programmed.startswith("True") else "False/Pending")


@pytest.mark.parametrize(
    ("spec", "accepted"),
    [
        ({"addresses": [{"type": "Hostname", "value": "example.com"}]}, "False/UnsupportedAddress"),
        ({"infrastructure": {"labels": {"eastgate.dev/gateway": "x"}}}, "False/InvalidParameters"),
        ({"listeners": []}, "False/ListenersNotValid"),
        ({"listeners": [_HTTP, {"name": "tcp", "port": 9000, "protocol": "TCP"}]}, "True/ListenersNotValid"),
        ({"listeners": [{"name": "tcp", "port": 9000, "protocol": "TCP"}]}, "False/ListenersNotValid"),
    ],
    ids=["address", "labels", "none", "some", "unsupported"],
)
def test_a_gateway_that_is_not_accepted_as_it_is(spec: dict[str, Any], accepted: str) -> None:
    assert statuses_of([gateway(**spec)]).gateway()["Accepted"] == accepted


def test_a_gateway_that_cannot_be_read_takes_nothing() -> None:
    broken = gateway("gw", {"name": "http", "port": "eighty", "protocol": "HTTP"})
    statuses = statuses_of([broken, route(), service()])
    assert statuses.gateway() == {"Accepted": "False/Invalid", "Programmed": "False/Invalid"}
    assert statuses.route()["Accepted"] == "False/Pending"


def test_an_address_that_the_service_did_not_get() -> None:
    asked = gateway(addresses=[{"value": "192.0.2.9"}])
    assert statuses_of([asked]).gateway()["Programmed"] == "False/AddressNotUsable"


@pytest.mark.parametrize(
    ("given", "addresses"),
    [
        (None, []),
        ({"spec": {"type": "LoadBalancer"}}, []),
        (SERVICE, [("IPAddress", "192.0.2.7")]),
        (
            {"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"hostname": "lb.example"}]}}},
            [("Hostname", "lb.example")],
        ),
        (
            {"spec": {"type": "ClusterIP", "clusterIPs": ["10.0.0.1", "fd00::1"]}},
            [("IPAddress", "10.0.0.1"), ("IPAddress", "fd00::1")],
        ),
        ({"spec": {"type": "ClusterIP", "clusterIP": "None"}}, []),
    ],
    ids=["none", "pending", "ip", "hostname", "cluster", "headless"],
)
def test_addresses(given: dict[str, Any] | None, addresses: list[tuple[str, str]]) -> None:
    assert [(entry["type"], entry["value"]) for entry in service_addresses(given)] == addresses


def test_a_status_that_is_there_is_not_changed() -> None:
    obj = gateway()
    statuses = statuses_of([obj])
    foreign = {"type": "example.com/Seen", "status": "True", "custom": 1}
    obj["status"] = {**statuses.gateways["gw"], "attachedListenerSets": 0}
    obj["status"]["conditions"] = [foreign, *obj["status"]["conditions"]]
    facts = GatewayFacts(service=SERVICE, progress=_PROGRAMMED)
    assert gateway_status(obj, statuses.standings["edge/gw"], facts, _LATER) == obj["status"]


def test_only_changed_conditions_have_a_new_time() -> None:
    obj = gateway()
    statuses = statuses_of([obj])
    obj["status"] = copy.deepcopy(statuses.gateways["gw"])
    obj["metadata"]["generation"] = 4
    changed = gateway_status(obj, statuses.standings["edge/gw"], GatewayFacts(service=SERVICE), _LATER)
    times = {entry["type"]: entry["lastTransitionTime"] for entry in changed["conditions"]}
    assert times == {"Accepted": NOW, "Programmed": _LATER}
    assert {entry["observedGeneration"] for entry in changed["conditions"]} == {4}


def test_a_class() -> None:
    obj = {"metadata": {"name": "eastgate", "generation": 2}, "spec": {}}
    assert reasons(class_status(obj, None, NOW)["conditions"]) == {"Accepted": "True/Accepted"}
    assert reasons(class_status(obj, "no", NOW)["conditions"]) == {"Accepted": "False/InvalidParameters"}
    accepted = class_status(obj, None, NOW)
    assert class_status({**obj, "status": accepted}, None, _LATER) == accepted


def test_unsupported_settings_of_a_gateway_are_named() -> None:
    obj = gateway(tls={"backend": {"clientCertificateRef": {"name": "own"}}})
    assert statuses_of([obj]).gateway()["ResolvedRefs"] == "False/InvalidClientCertificateRef"
    sets = gateway(allowedListeners={"namespaces": {"from": "Same"}})
    (accepted, _) = statuses_of([sets]).gateways["gw"]["conditions"]
    assert "ListenerSets are not supported" in accepted["message"]


# Listeners


@pytest.mark.parametrize(
    ("listeners", "conditions"),
    [
        ([{"name": "a", "port": 80, "protocol": "UDP"}], {"a": "False/UnsupportedProtocol"}),
        ([{"name": "a", "port": 15021, "protocol": "HTTP"}], {"a": "False/PortUnavailable"}),
        (
            [{"name": "a", "port": 80, "protocol": "HTTP"}, {"name": "b", "port": 80, "protocol": "HTTP"}],
            {"a": "False/HostnameConflict", "b": "False/HostnameConflict"},
        ),
        (
            [
                {"name": "a", "port": 80, "protocol": "HTTP", "hostname": "a.example"},
                {"name": "b", "port": 80, "protocol": "HTTP", "hostname": "a.example"},
                {"name": "c", "port": 80, "protocol": "HTTP", "hostname": "c.example"},
            ],
            {"a": "False/HostnameConflict", "b": "False/HostnameConflict", "c": "True/Accepted"},
        ),
        (
            [{"name": "a", "port": 443, "protocol": "HTTP"}, _https("b")],
            {"a": "True/Accepted", "b": "False/ProtocolConflict"},
        ),
        (
            [{"name": "a", "port": 443, "protocol": "TLS", "tls": {"certificateRefs": [{"name": "own"}]}}],
            {"a": "False/UnsupportedValue"},
        ),
    ],
    ids=["protocol", "own-port", "hostname", "hostnames", "conflict", "terminated"],
)
def test_listeners(listeners: list[dict[str, Any]], conditions: dict[str, str]) -> None:
    statuses = statuses_of([gateway("gw", *listeners), tls_secret("own", *self_signed("a.example"))])
    assert {name: statuses.listener(name)["Accepted"] for name in conditions} == conditions
    for name, accepted in conditions.items():
        conflicted = accepted.endswith("Conflict")
        assert statuses.listener(name)["Conflicted"].startswith("True" if conflicted else "False")
        if accepted.startswith("False"):
            assert statuses.listener(name)["Programmed"] == "False/Invalid"


@pytest.mark.parametrize(
    ("frontend", "conditions"),
    [
        ([{"group": "", "kind": "Secret", "name": "own"}], ("True/Accepted", "True/ResolvedRefs")),
        (
            [{"group": "", "kind": "Secret", "name": "x"}],
            (_NO_CA, "False/InvalidCACertificateRef"),
        ),
        (
            [{"group": "", "kind": "ConfigMap", "name": "x"}],
            (_NO_CA, "False/InvalidCACertificateKind"),
        ),
        (
            [{"group": "", "kind": "Secret", "name": "own", "namespace": "other"}],
            (_NO_CA, "False/RefNotPermitted"),
        ),
    ],
    ids=["there", "missing", "kind", "grant"],
)
def test_authorities_of_clients(frontend: list[dict[str, str]], conditions: tuple[str, str]) -> None:
    tls = {"frontend": {"default": {"validation": {"caCertificateRefs": frontend}}}}
    statuses = statuses_of([gateway("gw", _https(), tls=tls), tls_secret("own", *self_signed("a.example"))])
    listener = statuses.listener("https")
    assert (listener["Accepted"], listener["ResolvedRefs"]) == conditions


def test_a_listener_that_is_stricter_than_its_settings_reports_it() -> None:
    references = [{"group": "", "kind": "Secret", "name": "own"}]
    validation = {"caCertificateRefs": references, "mode": "AllowInsecureFallback"}
    tls = {"frontend": {"default": {"validation": validation}}}
    statuses = statuses_of([gateway("gw", _https(), tls=tls), tls_secret("own", *self_signed("a.example"))])
    (listener,) = statuses.gateways["gw"]["listeners"]
    (accepted,) = (entry for entry in listener["conditions"] if entry["type"] == "Accepted")
    assert accepted["status"] == "True"
    assert "AllowInsecureFallback is not supported" in accepted["message"]


# Routes


def _service_route(**backend: Any) -> dict[str, Any]:
    return route("r", {"backendRefs": [{"name": "web", "port": 80, **backend}]})


@pytest.mark.parametrize(
    ("objects", "resolved"),
    [
        ([_service_route(), service()], "True/ResolvedRefs"),
        ([_service_route()], "False/BackendNotFound"),
        ([_service_route(port=81), service()], "False/BackendNotFound"),
        ([_service_route(weight=0)], "False/BackendNotFound"),
        ([_service_route(kind="Pod"), service()], "False/InvalidKind"),
        ([_service_route(group="example.com"), service()], "False/InvalidKind"),
        ([_service_route(kind="XBackend", group="agentic.prototype.x-k8s.io")], "False/BackendNotFound"),
        ([_service_route(namespace="other"), service(namespace="other")], "False/RefNotPermitted"),
        ([_service_route(), service(appProtocol="kubernetes.io/h2c")], "False/UnsupportedProtocol"),
        ([_service_route(), service(appProtocol="kubernetes.io/ws")], "True/ResolvedRefs"),
        ([route("r", _REDIRECT)], "True/ResolvedRefs"),
    ],
    ids=range(11),
)
def test_references(objects: list[dict[str, Any]], resolved: str) -> None:
    statuses = statuses_of([gateway(), *objects])
    assert statuses.route() == {"Accepted": "True/Accepted", "ResolvedRefs": resolved}


@pytest.mark.parametrize(
    ("listener", "spec", "accepted"),
    [
        ({}, {}, "True/Accepted"),
        ({}, {"parentRefs": [{"name": "gw", "sectionName": "other"}]}, "False/NoMatchingParent"),
        ({}, {"parentRefs": [{"name": "gw", "port": 81}]}, "False/NoMatchingParent"),
        ({"hostname": "a.example"}, {"hostnames": ["b.example"]}, "False/NoMatchingListenerHostname"),
        ({"allowedRoutes": {"kinds": [{"kind": "GRPCRoute"}]}}, {}, "False/NotAllowedByListeners"),
        (
            {"allowedRoutes": {"namespaces": _SELECTED}},
            {},
            "False/NotAllowedByListeners",
        ),
        ({"protocol": "TCP"}, {}, "False/NotAllowedByListeners"),
    ],
    ids=range(7),
)
def test_acceptance(listener: dict[str, Any], spec: dict[str, Any], accepted: str) -> None:
    statuses = statuses_of([gateway("gw", {**_HTTP, **listener}), route(**spec), service()])
    assert statuses.route()["Accepted"] == accepted
    (of_gateway,) = statuses.gateways["gw"]["listeners"]
    assert of_gateway["attachedRoutes"] == int(accepted.startswith("True"))


def test_of_two_kinds_with_one_hostname_the_older_is_accepted() -> None:
    younger, older = (
        route("young"),
        route("old", kind="GRPCRoute", rules=[{"backendRefs": [{"name": "web", "port": 80}]}]),
    )
    for entry, year in ((younger, 2026), (older, 2020)):
        entry["metadata"]["creationTimestamp"] = f"{year}-01-01T00:00:00Z"
    statuses = statuses_of([gateway(), younger, older, service()])
    assert statuses.route("old", "GRPCRoute")["Accepted"] == "True/Accepted"
    assert statuses.route("young")["Accepted"] == "False/HostnameConflict"


def test_a_partly_supported_route_names_its_unsupported_rules() -> None:
    plain = {"backendRefs": [{"name": "web", "port": 80}]}
    statuses = statuses_of([gateway(), route("r", plain, _MIRROR), service()])
    assert statuses.route() == {
        "Accepted": "True/Accepted",
        "ResolvedRefs": "True/ResolvedRefs",
        "PartiallyInvalid": "True/UnsupportedValue",
    }
    (parent,) = statuses.routes["HTTPRoute/r"]
    message = parent["conditions"][-1]["message"]
    assert message.startswith("Dropped Rule")
    assert "RequestMirror (rule 1)" in message


def test_retries_that_are_not_made_are_named() -> None:
    retried = {"backendRefs": [{"name": "web", "port": 80}], "retry": {"attempts": 3}}
    (parent,) = statuses_of([gateway(), route("r", retried), service()]).routes["HTTPRoute/r"]
    accepted = parent["conditions"][0]
    assert (accepted["status"], accepted["reason"]) == ("True", "Accepted")
    assert "retry is not supported (rule 0)" in accepted["message"]


def test_a_route_of_which_nothing_can_be_done_is_not_accepted_nor_counted() -> None:
    statuses = statuses_of([gateway(), route("r", _MIRROR), service()])
    assert statuses.route()["Accepted"] == "False/UnsupportedValue"
    assert statuses.gateways["gw"]["listeners"][0]["attachedRoutes"] == 0


def test_each_parent_has_an_entry_of_its_own_as_it_is_written() -> None:
    references = [
        {"name": "gw", "sectionName": "http"},
        {"name": "gw", "sectionName": "none", "group": "gateway.networking.k8s.io", "kind": "Gateway"},
        {"name": "not-ours"},
        {"name": "web", "kind": "Service", "group": ""},
    ]
    statuses = statuses_of([gateway(), route(parentRefs=references), service()])
    assert [entry["parentRef"] for entry in statuses.routes["HTTPRoute/r"]] == references[:2]
    assert statuses.route(parent=0)["Accepted"] == "True/Accepted"
    assert statuses.route(parent=1)["Accepted"] == "False/NoMatchingParent"


def test_entries_of_other_controllers_stay_and_own_entries_are_removed_with_the_reference() -> None:
    other = {"parentRef": {"name": "gw"}, "controllerName": "example.com/x", "conditions": [{"type": "Accepted"}]}
    gone = {"parentRef": {"name": "old"}, "controllerName": "eastgate.dev/gateway-controller", "conditions": []}
    obj = route()
    obj["status"] = {"parents": [gone, other]}
    first = statuses_of([gateway(), obj, service()])
    entries = first.routes["HTTPRoute/r"]
    assert entries[0] == other
    assert [entry["controllerName"] for entry in entries[1:]] == ["eastgate.dev/gateway-controller"]
    obj["status"] = {"parents": entries}
    world, _ = world_of([gateway(), obj, service()])
    assert route_parents(obj, first.standings, world, _LATER) == entries


def test_an_unreadable_route_has_a_reason() -> None:
    obj = route("r", {"backendRefs": [{"name": "web", "port": "eighty"}]})
    world, problems = world_of([gateway(), obj])
    standings = statuses_of([gateway()]).standings
    (parent,) = route_parents(obj, standings, world, NOW, unreadable=problems[0])
    accepted, resolved = parent["conditions"]
    assert (accepted["status"], accepted["reason"], accepted["message"]) == ("False", "UnsupportedValue", problems[0])
    assert resolved["status"] == "Unknown"
