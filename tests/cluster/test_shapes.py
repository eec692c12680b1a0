"""The quick answer, whether data fits a shape, agrees with the examination that reports the errors."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate.basics.diagnostics import Reporter
from eastgate.cluster import codes
from eastgate.cluster.examination import Examination
from eastgate.cluster.read_gateways import GATEWAY, GRANT, ROUTES
from eastgate.cluster.read_pods import CONTROLLERS, POD
from eastgate.cluster.secrets import SECRET
from eastgate.cluster.slices import SLICE
from eastgate.reading.manifests.shapes import Check, Field, ListOf, Record, Shape, Text, check
from eastgate.reading.manifests.shapes.constraints import Demand, Problem
from eastgate.reading.manifests.shapes.reading import MisfitError, parameter, reader
from tests.cluster.manifests import manifest
from tests.reading.manifests.reading import yaml_node

CONTAINER = {
    "ports": [{"containerPort": 80, "name": "http", "protocol": "TCP"}],
    "livenessProbe": {"httpGet": {"port": "http", "path": "/"}},
    "restartPolicy": "Always",
}
METADATA = {
    "labels": {"a": "b"},
    "annotations": {"a": "b"},
    "ownerReferences": [{"controller": True, "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r"}],
    "creationTimestamp": "2020-01-01T00:00:00Z",
}
POD_SPEC = {"serviceAccountName": "", "serviceAccount": "b", "containers": [CONTAINER], "initContainers": [CONTAINER]}
TEMPLATE = {"template": {"metadata": {"labels": {"a": "b"}}, "spec": POD_SPEC}}
VALUES = [{"name": "a", "value": "b", "type": "RegularExpression"}]
BACKENDS = [{"name": "a", "port": 80, "weight": 1}]
PARENTS = [{"name": "a", "port": 80, "sectionName": "b"}]
SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
LISTENER = {
    "name": "a",
    "port": 80,
    "protocol": "HTTP",
    "hostname": "*.a",
    "allowedRoutes": {"namespaces": {"from": "Selector", "selector": SELECTOR}, "kinds": [{"kind": "HTTPRoute"}]},
}
MATCH = {"path": {"type": "Exact", "value": "/a"}, "method": "GET", "headers": VALUES, "queryParams": VALUES}
PATH = {"type": "ReplaceFullPath", "replaceFullPath": "/"}
FILTERS = [
    {
        "type": "URLRewrite",
        "urlRewrite": {"hostname": "a.b", "path": {"type": "ReplaceFullPath", "replaceFullPath": "/"}},
    },
    {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "a", "value": "b"}], "remove": ["c"]}},
    {"type": "CORS", "cors": {"allowOrigins": ["*"], "allowCredentials": True, "maxAge": 1}},
    {"type": "ExtensionRef", "extensionRef": {}},
]
RULE = {
    "name": "a",
    "timeouts": {"request": "1m", "backendRequest": "10s"},
    "retry": {"codes": [500], "attempts": 1, "backoff": "1ms"},
    "sessionPersistence": {},
}
CALL = {"method": {"service": "a.B", "method": "C", "type": "Exact"}, "headers": VALUES}
OBJECTS: dict[str, tuple[Record[None], dict[str, Any]]] = {
    "Pod": (
        POD,
        {
            "metadata": METADATA,
            "spec": {**POD_SPEC, "hostNetwork": False},
            "status": {"podIPs": [{"ip": "::1"}], "podIP": "127.0.0.1", "phase": "Running"},
        },
    ),
    "Deployment": (CONTROLLERS["Deployment"][0], {"metadata": METADATA, "spec": TEMPLATE}),
    "CronJob": (CONTROLLERS["CronJob"][0], {"metadata": METADATA, "spec": {"jobTemplate": {"spec": TEMPLATE}}}),
    "Prometheus": (
        CONTROLLERS["Prometheus"][0],
        {"spec": {**POD_SPEC, "version": "v1", "listenLocal": False, "portName": "web", "podMetadata": METADATA}},
    ),
    "Secret": (SECRET, {"metadata": METADATA, "data": {"a": "YQ=="}, "stringData": {"b": "c"}, "type": "Opaque"}),
    "EndpointSlice": (
        SLICE,
        {
            "endpoints": [{"addresses": ["127.0.0.1"], "targetRef": {"kind": "Pod", "name": "a", "namespace": "b"}}],
            "ports": [{"name": "a", "port": 80, "protocol": "TCP"}],
        },
    ),
    "Gateway": (GATEWAY, {"spec": {"gatewayClassName": "a", "listeners": [LISTENER]}}),
    "ReferenceGrant": (
        GRANT,
        {"spec": {"from": [{"group": "a", "kind": "b", "namespace": "c"}], "to": [{"kind": "b", "name": "c"}]}},
    ),
    "HTTPRoute": (
        ROUTES["HTTPRoute"][0],
        {
            "metadata": METADATA,
            "spec": {
                "hostnames": ["a.b"],
                "parentRefs": PARENTS,
                "rules": [{"matches": [MATCH], "backendRefs": BACKENDS, "filters": FILTERS, **RULE}],
            },
        },
    ),
    "GRPCRoute": (
        ROUTES["GRPCRoute"][0],
        {"spec": {"parentRefs": PARENTS, "rules": [{"matches": [CALL], "backendRefs": BACKENDS}]}},
    ),
}
WORDS = ["", "80", "a", "A/b", "*", "/", "(", "Exact", "RegularExpression", "Selector", "NotIn", "Exists", "Pod", "tcp"]
OTHERS: list[object] = [None, 0, 1, 65536, -1, 0.5, True, False, [], {}, [None], ["a"], [{}], {"a": 1}, {"a": None}]


def paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    children: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    return [path, *(found for key, child in children for found in paths(child, (*path, key)))]


@st.composite
def mutants(draw: st.DrawFn, whole: dict[str, Any]) -> dict[str, Any]:
    """Draw an object with up to two values replaced or removed."""
    mutant = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(paths(mutant)))
        if not path:
            continue
        holder: Any = mutant
        for key in path[:-1]:
            holder = holder[key]
        if draw(st.booleans()):
            holder[path[-1]] = copy.deepcopy(draw(st.sampled_from([*WORDS, *OTHERS])))
        else:
            del holder[path[-1]]
    return mutant


def findings(shape: Record[None], data: dict[str, Any]) -> list[str]:
    reporter = Reporter()
    Examination(manifest("v1", "X", "x", **data), reporter).examine(shape, data)
    return [finding.message for finding in reporter.diagnostics]


def fits(shape: Record[None], data: dict[str, Any]) -> bool:
    try:
        reader(shape)(data, "shop")
    except MisfitError:
        return False
    return True


@pytest.mark.parametrize("kind", OBJECTS)
def test_what_is_in_order_fits(kind: str) -> None:
    shape, whole = OBJECTS[kind]
    assert findings(shape, whole) == []
    assert fits(shape, whole)


@pytest.mark.parametrize("kind", OBJECTS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_data_fits_where_nothing_is_wrong_with_it(kind: str, data: st.DataObject) -> None:
    shape, whole = OBJECTS[kind]
    mutant = data.draw(mutants(whole))
    assert fits(shape, mutant) == (findings(shape, mutant) == [])


def records(shape: Shape[None], path: str = "") -> Iterator[tuple[str, Record[None]]]:
    match shape:
        case Record():
            yield path, shape
            for name, of in shape.fields.items():
                yield from records(of.shape, f"{path}.{name}")
        case ListOf():
            yield from records(shape.item, path)
        case _:
            pass


def parameters(shape: Record[None]) -> list[str]:
    """Return the parameters for the fields of a record, and of its parts without a type of their own."""
    named = [(parameter(key, of), of.shape) for key, of in shape.fields.items()]
    return [
        name for into, of in named for name in ([into] if into is not None else parameters(cast("Record[None]", of)))
    ]


@pytest.mark.parametrize("kind", OBJECTS)
def test_what_makes_an_object_takes_all_that_is_read(kind: str) -> None:
    for path, shape in records(OBJECTS[kind][0]):
        taken = parameters(shape)
        if shape.make is not None:
            signature = inspect.signature(shape.make)
            signature.bind_partial(**dict.fromkeys(taken))
            left_out = {
                name
                for name, of in signature.parameters.items()
                if of.default is of.empty and of.kind not in (of.VAR_KEYWORD, of.VAR_POSITIONAL)
            }
            required = {parameter(key, of) for key, of in shape.fields.items() if of.required or of.home}
            assert left_out <= required, path


def _short(text: str) -> list[Problem]:
    return [Problem(codes.BAD_VALUE, f"{text} is too long", "write less")] if len(text) > 3 else []


def _equal(entries: dict[str, str]) -> list[Problem]:
    return [Problem(codes.BAD_VALUE, "two are the same", "change it", ("b",))] if entries["a"] == entries["b"] else []


def test_a_demand_is_the_same_of_nodes_and_of_plain_data() -> None:
    named: Field[None] = Field(Text(rule=Demand(_short)), required=True)
    shape: Record[None] = Record("a pair", {"a": named, "b": named}, rules=(Demand(_equal),))
    for text, at in (("{a: long, b: x}", "long"), ("{a: x, b: x}", "x"), ("{a: x, b: z}", None)):
        node = yaml_node(text)
        assert node is not None
        reporter = Reporter()
        check(shape, node, Check(reporter, None))
        plain = node.plain()
        assert isinstance(plain, dict)
        assert [finding.message for finding in reporter.diagnostics] == findings(shape, plain)
        assert [finding.span.underlined for finding in reporter.diagnostics if finding.span] == ([at] if at else [])


def test_a_rule_that_needs_positions_is_no_rule_of_plain_data() -> None:
    with pytest.raises(TypeError, match="needs positions"):
        reader(Text(rule=lambda _node, _to: None))
