"""All errors in Kubernetes data are reported, each with its place."""

from __future__ import annotations

import pytest

from eastgate.basics.diagnostics import Code
from eastgate.cluster import codes
from tests.cluster.manifests import errors

GATEWAY = "gateway.networking.k8s.io/v1"
OUTSIDE, VM, MESH_NAME = "workload.linkerd.io/v1beta1", "ExternalWorkload", "spec.meshTLS.identity"


def pod_with(
    spec: object = None, labels: object = None, status: object = None, owners: object = None
) -> dict[str, object]:
    return {"metadata": {"labels": labels, "ownerReferences": owners}, "spec": spec, "status": status}


def port(**fields: object) -> dict[str, object]:
    return {"containers": [{"ports": [fields]}]}


def service_port(**fields: object) -> dict[str, object]:
    return {"spec": {"ports": [fields]}}


def route_rule(**fields: object) -> dict[str, object]:
    return {"spec": {"rules": [fields]}}


def route_match(**fields: object) -> dict[str, object]:
    return route_rule(matches=[fields])


def call(**fields: object) -> dict[str, object]:
    return route_match(method=fields)


def probe(get: object, kind: str = "livenessProbe", containers: str = "containers") -> dict[str, object]:
    return pod_with({containers: [{kind: {"httpGet": get}}]})


def external(spec: object = None, **fields: object) -> dict[str, object]:
    return {"spec": {"meshTLS": {"identity": "vm.example.com"}, **fields} if spec is None else spec}


def known_as(identity: object) -> dict[str, object]:
    return external({"meshTLS": {"identity": identity}})


def listener(**fields: object) -> dict[str, object]:
    return {"spec": {"listeners": [{"name": "a", "port": 80, "protocol": "HTTP", **fields}]}}


def routes_from(selector: object = None, origin: object = "Selector") -> dict[str, object]:
    return listener(allowedRoutes={"namespaces": {"from": origin, "selector": selector}})


def term(**fields: object) -> dict[str, object]:
    return routes_from({"matchExpressions": [fields]})


def header(fields: dict[str, object]) -> dict[str, object]:
    return route_match(headers=[fields])


def query(fields: dict[str, object]) -> dict[str, object]:
    return route_match(queryParams=[fields])


def backend(**fields: object) -> dict[str, object]:
    return route_rule(backendRefs=[fields])


def secure(**tls: object) -> dict[str, object]:
    return listener(protocol="HTTPS", tls=tls)


def filtered(type_: str, **fields: object) -> dict[str, object]:
    return route_rule(filters=[{"type": type_, **fields}])


def modified(**header: object) -> dict[str, object]:
    return filtered("RequestHeaderModifier", requestHeaderModifier={"set": [header]})


def redirected(**fields: object) -> dict[str, object]:
    return filtered("RequestRedirect", requestRedirect=fields)


def regex(value: str) -> dict[str, object]:
    return {"type": "RegularExpression", "value": value}


HEADER: dict[str, object] = {"name": "a", "value": "b"}
ALLOWED = "spec.listeners.0.allowedRoutes"
RULE, MATCH = "spec.rules.0", "spec.rules.0.matches.0"
HEADERS, PARAMETERS = f"{MATCH}.headers.0", f"{MATCH}.queryParams.0"
REF, FROM = f"{RULE}.backendRefs.0", f"{ALLOWED}.namespaces"
TERM = f"{FROM}.selector.matchExpressions.0"
LISTENER = {"name": "a", "protocol": "HTTP"}
PORT = "spec.containers.0.ports.0"
PROBE, INITIAL = "spec.containers.0.livenessProbe", "spec.initContainers.0.startupProbe"
GET = f"{PROBE}.httpGet"
METHOD = f"{MATCH}.method"
FILTER = f"{RULE}.filters.0"
MODIFIER, REDIRECT = f"{FILTER}.requestHeaderModifier", f"{FILTER}.requestRedirect"
FULL: dict[str, object] = {"type": "ReplaceFullPath", "replaceFullPath": "/"}
BACKEND = {"name": "a", "port": 80}
REWRITES, REDIRECTS = {"type": "URLRewrite", "urlRewrite": {}}, {"type": "RequestRedirect", "requestRedirect": {}}
PREFIX = {
    "type": "URLRewrite",
    "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}},
}
WRONG: list[tuple[str, str, dict[str, object], str, str, str]] = [
    # kind, place, code, message
    ("v1", "Pod", pod_with("x"), "EG1101", "spec", "`spec` is a string; it must be a mapping"),
    ("v1", "Secret", {"data": {"k": "?"}}, "EG1114", "metadata.name", "`k` of the Secret is not base64"),
    ("v1", "Secret", {"stringData": {"k": 1}}, "EG1114", "metadata.name", "`k` of the Secret is not a string"),
    ("v1", "Pod", {"metadata": []}, "EG1101", "metadata", "`metadata` is a list"),
    ("v1", "Pod", pod_with(labels=["a"]), "EG1101", "metadata.labels", "is a list; it must be a mapping"),
    ("v1", "Pod", pod_with(labels={"v": 1}), "EG1104", "metadata.labels.v", "`v` in `metadata.labels` is a number"),
    ("v1", "Pod", pod_with(labels={"v": None}), "EG1104", "metadata.labels.v", "is null, not a string"),
    ("v1", "Pod", pod_with({"containers": {}}), "EG1101", "spec.containers", "it must be a list"),
    ("v1", "Pod", pod_with({"containers": ["a"]}), "EG1101", "spec.containers.0", "`spec.containers[0]` is a string"),
    ("v1", "Pod", pod_with(port(containerPort="80")), "EG1101", f"{PORT}.containerPort", "it must be a whole number"),
    ("v1", "Pod", pod_with(port(containerPort=True)), "EG1101", f"{PORT}.containerPort", "is a boolean"),
    ("v1", "Pod", pod_with(port(containerPort=80.5)), "EG1101", f"{PORT}.containerPort", "it must be a whole number"),
    ("v1", "Pod", pod_with(port(containerPort=0)), "EG1102", f"{PORT}.containerPort", "port 0 is out of range"),
    ("v1", "Pod", pod_with(port(containerPort=65536)), "EG1102", f"{PORT}.containerPort", "port 65536 is out of range"),
    ("v1", "Pod", pod_with(port(name="a")), "EG1103", PORT, "containerPort` is missing"),
    ("v1", "Pod", pod_with(port(containerPort=1, name=2)), "EG1101", f"{PORT}.name", "it must be a string"),
    ("v1", "Pod", pod_with(port(containerPort=1, protocol="tcp")), "EG1106", f"{PORT}.protocol", "`tcp` is not"),
    ("v1", "Pod", pod_with({"serviceAccountName": 1}), "EG1101", "spec.serviceAccountName", "a string"),
    ("v1", "Pod", pod_with({"serviceAccountName": "a/b"}), "EG1107", "spec.serviceAccountName", "`a/b` is not"),
    ("v1", "Pod", pod_with({"hostNetwork": "yes"}), "EG1101", "spec.hostNetwork", "it must be true or false"),
    ("v1", "Pod", pod_with(status={"podIP": "10.0.0"}), "EG1105", "status.podIP", "`10.0.0` is not an IP address"),
    ("v1", "Pod", pod_with(status={"podIPs": [{"ip": "x"}]}), "EG1105", "status.podIPs.0.ip", "`x` is not an IP"),
    ("v1", "Pod", pod_with(owners=[{"controller": True, "kind": "A"}]), "EG1103", "metadata.ownerReferences.0", "name"),
    ("v1", "Pod", pod_with({"containers": [{"livenessProbe": 1}]}), "EG1101", PROBE, "it must be a mapping"),
    ("v1", "Pod", probe("/healthz"), "EG1101", GET, "is a string; it must be a mapping"),
    ("v1", "Pod", probe({}), "EG1103", GET, "`spec.containers[0].livenessProbe.httpGet.port` is missing"),
    ("v1", "Pod", probe({"port": 0}), "EG1102", f"{GET}.port", "port 0 is out of range"),
    ("v1", "Pod", probe({"port": 65536}), "EG1102", f"{GET}.port", "port 65536 is out of range"),
    ("v1", "Pod", probe({"port": "80"}), "EG1101", f"{GET}.port", "is a string; it must be a number"),
    ("v1", "Pod", probe({"port": True}), "EG1101", f"{GET}.port", "is a boolean; it must be a whole number"),
    ("v1", "Pod", probe({"port": 80, "path": 1}), "EG1101", f"{GET}.path", "is a number; it must be a string"),
    ("v1", "Pod", probe({"port": 0}, "startupProbe", "initContainers"), "EG1102", f"{INITIAL}.httpGet.port", "port 0"),
    ("v1", "Pod", pod_with({"initContainers": [{"ports": [{}]}]}), "EG1103", "spec.initContainers.0.ports.0", "is"),
    (OUTSIDE, VM, {}, "EG1103", "spec", "`spec.meshTLS` is missing"),
    (OUTSIDE, VM, external({"meshTls": {"identity": "a"}}), "EG1103", "spec", "`spec.meshTLS` is missing"),
    (OUTSIDE, VM, external({"meshTLS": "a"}), "EG1101", "spec.meshTLS", "it must be a mapping"),
    (OUTSIDE, VM, external({"meshTLS": {}}), "EG1103", "spec.meshTLS", "`spec.meshTLS.identity` is missing"),
    (OUTSIDE, VM, known_as(1), "EG1101", MESH_NAME, "a string"),
    (OUTSIDE, VM, known_as(""), "EG1107", MESH_NAME, "it is empty"),
    (OUTSIDE, VM, known_as("*.a"), "EG1107", MESH_NAME, "`*.a` is"),
    (OUTSIDE, VM, known_as("spiffe://a"), "EG1107", MESH_NAME, "it names a trust domain and no workload"),
    (OUTSIDE, VM, external(ports=[{}]), "EG1103", "spec.ports.0", "`spec.ports[0].port` is missing"),
    (OUTSIDE, VM, external(ports=[{"port": 0}]), "EG1102", "spec.ports.0.port", "port 0 is out of range"),
    (OUTSIDE, VM, external(ports=[{"port": 1, "protocol": "tcp"}]), "EG1106", "spec.ports.0.protocol", "`tcp`"),
    (OUTSIDE, VM, external(workloadIPs=[{"ip": "vm"}]), "EG1105", "spec.workloadIPs.0.ip", "`vm` is not an IP"),
    (OUTSIDE, VM, external(workloadIPs=["10.0.0.1"]), "EG1101", "spec.workloadIPs.0", "it must be a mapping"),
    ("apps/v1", "Deployment", {"spec": {}}, "EG1103", "spec", "`spec.template` is missing"),
    ("apps/v1", "Deployment", {}, "EG1103", "spec", "`spec.template` is missing"),
    ("apps/v1", "Deployment", {"spec": {"template": 1}}, "EG1101", "spec.template", "it must be a mapping"),
    ("batch/v1", "CronJob", {"spec": {}}, "EG1103", "spec.jobTemplate.spec", "`spec.jobTemplate.spec.template` is"),
    ("v1", "Service", {"spec": {"selector": {"a": True}}}, "EG1104", "spec.selector.a", "is a boolean"),
    ("v1", "Service", service_port(), "EG1103", "spec.ports.0", "`spec.ports[0].port` is missing"),
    ("v1", "Service", service_port(port=1, targetPort="80"), "EG1101", "spec.ports.0.targetPort", "a number"),
    ("v1", "Service", service_port(port=1, targetPort=70000), "EG1102", "spec.ports.0.targetPort", "70000"),
    ("v1", "Service", service_port(port=1, targetPort=[]), "EG1101", "spec.ports.0.targetPort", "a list"),
    ("v1", "Namespace", {"metadata": {"annotations": {"a": {}}}}, "EG1104", "metadata.annotations.a", "a mapping"),
    (GATEWAY, "Gateway", {"spec": {"listeners": [LISTENER]}}, "EG1103", "spec.listeners.0", "port` is missing"),
    (GATEWAY, "Gateway", listener(hostname=[]), "EG1101", "spec.listeners.0.hostname", "it must be a string"),
    (GATEWAY, "Gateway", listener(hostname="*"), "EG1109", "spec.listeners.0.hostname", "`*` is not a hostname"),
    (GATEWAY, "Gateway", listener(hostname="a:80"), "EG1109", "spec.listeners.0.hostname", "`a:80` is not"),
    (GATEWAY, "Gateway", listener(allowedRoutes=1), "EG1101", ALLOWED, "a mapping"),
    (GATEWAY, "Gateway", listener(allowedRoutes={"kinds": [{}]}), "EG1103", f"{ALLOWED}.kinds.0", "kind`"),
    (GATEWAY, "Gateway", routes_from(origin="all"), "EG1108", f"{FROM}.from", "cannot be `all`"),
    (GATEWAY, "Gateway", routes_from(), "EG1103", FROM, "selector` is missing"),
    (GATEWAY, "Gateway", routes_from({"labels": {}}), "EG1112", f"{FROM}.selector.labels", "has no field `labels`"),
    (GATEWAY, "Gateway", routes_from({"matchLabels": {"a": 1}}), "EG1104", f"{FROM}.selector.matchLabels.a", "is"),
    (GATEWAY, "Gateway", term(key="a", operator="in"), "EG1108", f"{TERM}.operator", "`in`"),
    (GATEWAY, "Gateway", term(key="a", operator="In"), "EG1112", TERM, "`In` needs values"),
    (GATEWAY, "Gateway", term(key="a", operator="NotIn", values=[]), "EG1112", TERM, "`NotIn` needs values"),
    (GATEWAY, "Gateway", term(key="a", operator="Exists", values=["b"]), "EG1112", TERM, "has no values"),
    (GATEWAY, "Gateway", term(key="a"), "EG1103", TERM, "operator` is missing"),
    (GATEWAY, "Gateway", term(operator="Exists"), "EG1103", TERM, "key` is missing"),
    (GATEWAY, "HTTPRoute", route_rule(matches={}), "EG1101", f"{RULE}.matches", "it must be a list"),
    (GATEWAY, "HTTPRoute", route_match(path="/a"), "EG1101", f"{MATCH}.path", "it must be a mapping"),
    (GATEWAY, "HTTPRoute", route_match(path={"value": 1}), "EG1101", f"{MATCH}.path.value", "it must be a string"),
    (GATEWAY, "HTTPRoute", route_match(path={"type": "Prefix"}), "EG1108", f"{MATCH}.path.type", "cannot be `Prefix`"),
    (GATEWAY, "HTTPRoute", route_match(path={"value": "a"}), "EG1110", f"{MATCH}.path.value", "does not begin with /"),
    (GATEWAY, "HTTPRoute", route_match(path={"value": ""}), "EG1110", f"{MATCH}.path.value", "does not begin with /"),
    (GATEWAY, "HTTPRoute", route_match(path={"value": "/a?b"}), "EG1110", f"{MATCH}.path.value", "a query"),
    (GATEWAY, "HTTPRoute", route_match(path={"value": "/a b"}), "EG1110", f"{MATCH}.path.value", "must be encoded"),
    (GATEWAY, "HTTPRoute", route_match(path={"value": "/a%2Fb"}), "EG1110", f"{MATCH}.path.value", "an encoded slash"),
    (GATEWAY, "HTTPRoute", route_match(path={"value": "/a//b"}), "EG1110", f"{MATCH}.path.value", "normalized"),
    (GATEWAY, "HTTPRoute", route_match(path={"value": "/a/.."}), "EG1110", f"{MATCH}.path.value", "normalized"),
    (GATEWAY, "HTTPRoute", route_match(path=regex("(")), "EG1111", f"{MATCH}.path.value", "missing )"),
    (GATEWAY, "HTTPRoute", route_match(path=regex("(?=a)")), "EG1111", f"{MATCH}.path.value", "(?="),
    (GATEWAY, "HTTPRoute", route_match(method="get"), "EG1108", f"{MATCH}.method", "cannot be `get`"),
    (GATEWAY, "HTTPRoute", header({"value": "a"}), "EG1103", HEADERS, "name` is missing"),
    (GATEWAY, "HTTPRoute", header({"name": "a"}), "EG1103", HEADERS, "value` is missing"),
    (GATEWAY, "HTTPRoute", header({**HEADER, "type": "Prefix"}), "EG1108", f"{HEADERS}.type", "Prefix"),
    (GATEWAY, "HTTPRoute", header({"name": "a", **regex("*")}), "EG1111", f"{HEADERS}.value", "`*` is not"),
    (GATEWAY, "HTTPRoute", query({**HEADER, "value": True}), "EG1101", f"{PARAMETERS}.value", "a boolean"),
    (GATEWAY, "HTTPRoute", route_rule(filters=[{}]), "EG1103", f"{RULE}.filters.0", "type` is missing"),
    (GATEWAY, "HTTPRoute", backend(port=80), "EG1103", REF, "name` is missing"),
    (GATEWAY, "HTTPRoute", backend(name="a"), "EG1103", REF, "port` is missing"),
    (GATEWAY, "HTTPRoute", backend(name="a", port="http"), "EG1101", f"{REF}.port", "a whole number"),
    (GATEWAY, "HTTPRoute", backend(name="a", port=1, weight="1"), "EG1101", f"{REF}.weight", "a whole number"),
    (GATEWAY, "HTTPRoute", backend(name="a", port=1, weight=-1), "EG1108", f"{REF}.weight", "cannot be -1"),
    (GATEWAY, "HTTPRoute", {"metadata": {"creationTimestamp": 1}}, "EG1101", "metadata.creationTimestamp", "a string"),
    (GATEWAY, "HTTPRoute", {"spec": {"hostnames": ["a.com", "A.com"]}}, "EG1109", "spec.hostnames.1", "`A.com` is not"),
    (GATEWAY, "HTTPRoute", {"spec": {"hostnames": "a.com"}}, "EG1101", "spec.hostnames", "it must be a list"),
    (GATEWAY, "TLSRoute", {"spec": {"hostnames": ["10.0.0.1/8"]}}, "EG1109", "spec.hostnames.0", "is not a hostname"),
    (GATEWAY, "HTTPRoute", {"spec": {"hostnames": [1]}}, "EG1101", "spec.hostnames.0", "it must be a string"),
    (GATEWAY, "HTTPRoute", {"spec": {"rules": ["a"]}}, "EG1101", "spec.rules.0", "it must be a mapping"),
    (GATEWAY, "HTTPRoute", {"spec": {"parentRefs": [{}]}}, "EG1103", "spec.parentRefs.0", "name` is missing"),
    (GATEWAY, "GRPCRoute", route_rule(matches={}), "EG1101", f"{RULE}.matches", "it must be a list"),
    (GATEWAY, "GRPCRoute", route_match(method="Get"), "EG1101", METHOD, "is a string; it must be a mapping"),
    (GATEWAY, "GRPCRoute", call(), "EG1103", METHOD, "a match of methods names neither a service nor a method"),
    (GATEWAY, "GRPCRoute", call(type="Exact", service=None), "EG1103", METHOD, "neither a service nor a method"),
    (GATEWAY, "GRPCRoute", call(method=1), "EG1101", f"{METHOD}.method", "it must be a string"),
    (GATEWAY, "GRPCRoute", call(service=""), "EG1113", f"{METHOD}.service", "the service is empty"),
    (GATEWAY, "GRPCRoute", call(service="a", method="/"), "EG1113", f"{METHOD}.method", "`/` is not the name"),
    (GATEWAY, "GRPCRoute", call(service="a/b"), "EG1113", f"{METHOD}.service", "is not the name of a gRPC service"),
    (GATEWAY, "GRPCRoute", call(method="a.B"), "EG1113", f"{METHOD}.method", "`a.B` is not the name of a gRPC method"),
    (GATEWAY, "GRPCRoute", call(type="Prefix", service="a"), "EG1108", f"{METHOD}.type", "cannot be `Prefix`"),
    (GATEWAY, "GRPCRoute", call(type="RegularExpression", service="("), "EG1111", f"{METHOD}.service", "missing )"),
    (GATEWAY, "GRPCRoute", call(type="RegularExpression", method="(?=a)"), "EG1111", f"{METHOD}.method", "(?="),
    (GATEWAY, "GRPCRoute", header({"name": "a", **regex("*")}), "EG1111", f"{HEADERS}.value", "`*` is not"),
    (GATEWAY, "GRPCRoute", route_rule(filters=[{}]), "EG1103", f"{RULE}.filters.0", "type` is missing"),
    (GATEWAY, "Gateway", listener(tls={"mode": "Passthrough"}), "EG1108", "spec.listeners.0.tls", "HTTP has no TLS"),
    (GATEWAY, "Gateway", secure(), "EG1103", "spec.listeners.0.tls", "needs a certificate"),
    (GATEWAY, "Gateway", secure(mode="Passthrough"),
     "EG1108", "spec.listeners.0.tls.mode", "HTTPS ends at the gateway"),
    (GATEWAY, "Gateway", secure(mode="terminate"), "EG1108", "spec.listeners.0.tls.mode", "cannot be `terminate`"),
    (GATEWAY, "Gateway", secure(certificateRefs=[{}]), "EG1103", "spec.listeners.0.tls.certificateRefs.0", "name`"),
    (GATEWAY, "Gateway", listener(protocol="TLS"), "EG1103", "spec.listeners.0", "a listener of TLS needs `tls`"),
    (GATEWAY, "Gateway", listener(protocol="TCP", hostname="a"), "EG1108", "spec.listeners.0.hostname", "TCP has no"),
    (GATEWAY, "HTTPRoute", filtered("URLRewrite"), "EG1103", FILTER, "a URLRewrite filter needs `urlRewrite`"),
    (GATEWAY, "HTTPRoute", filtered("Other", cors={}), "EG1108", f"{FILTER}.cors", "a Other filter has no `cors`"),
    (GATEWAY, "HTTPRoute", filtered("CORS", cors={"allowOrigins": ["a"]}),
     "EG1108", f"{FILTER}.cors.allowOrigins.0", "is not an origin"),
    (GATEWAY, "HTTPRoute", filtered("CORS", cors={"allowMethods": ["*", "GET"]}),
     "EG1108", f"{FILTER}.cors.allowMethods", "stands alone"),
    (GATEWAY, "HTTPRoute", modified(name="a b", value="c"),
     "EG1108", f"{MODIFIER}.set.0.name", "'a b' is not the name"),
    (GATEWAY, "HTTPRoute", modified(name="a", value="c\r\nd: e"),
     "EG1108", f"{MODIFIER}.set.0.value", "is not the value"),
    (GATEWAY, "HTTPRoute", modified(name="a"), "EG1103", f"{MODIFIER}.set.0", "value` is missing"),
    (GATEWAY, "HTTPRoute", redirected(statusCode=304),
     "EG1108", f"{REDIRECT}.statusCode", "304 is not the status of a redirect"),
    (GATEWAY, "HTTPRoute", redirected(scheme="ftp"), "EG1108", f"{REDIRECT}.scheme", "cannot be `ftp`"),
    (GATEWAY, "HTTPRoute", redirected(hostname="*.a"), "EG1108", f"{REDIRECT}.hostname", "is not a hostname"),
    (GATEWAY, "HTTPRoute", redirected(path={"type": "ReplaceFullPath"}),
     "EG1103", f"{REDIRECT}.path", "needs `replaceFullPath`"),
    (GATEWAY, "HTTPRoute", redirected(path={**FULL, "replacePrefixMatch": "/"}),
     "EG1108", f"{REDIRECT}.path.replacePrefixMatch", "needs `type: Repl"),
    (GATEWAY, "HTTPRoute", redirected(path={**FULL, "replaceFullPath": "/a b"}),
     "EG1110", f"{REDIRECT}.path.replaceFullPath", "must be encoded"),
    (GATEWAY, "HTTPRoute", route_rule(filters=[REWRITES, REWRITES]),
     "EG1108", f"{RULE}.filters", "URLRewrite is there 2 times"),
    (GATEWAY, "HTTPRoute", route_rule(filters=[REDIRECTS, REWRITES]), "EG1108", f"{RULE}.filters", "not both"),
    (GATEWAY, "HTTPRoute", route_rule(filters=[REDIRECTS], backendRefs=[BACKEND]),
     "EG1108", f"{RULE}.backendRefs", "has no backends"),
    (GATEWAY, "HTTPRoute", route_rule(filters=[PREFIX], matches=[{}, {}]),
     "EG1108", f"{RULE}.matches", "exactly one match"),
    (GATEWAY, "HTTPRoute", route_rule(filters=[PREFIX], matches=[{"path": {"type": "Exact"}}]),
     "EG1108", f"{RULE}.matches", "exactly one match"),
    (GATEWAY, "HTTPRoute", route_rule(timeouts={"request": "1"}),
     "EG1108", f"{RULE}.timeouts.request", "`1` is not a duration"),
    (GATEWAY, "HTTPRoute", route_rule(timeouts={"request": "1s", "backendRequest": "2s"}),
     "EG1108", f"{RULE}.timeouts.backendRequest", "longer than"),
    (GATEWAY, "HTTPRoute", route_rule(retry={"codes": [200]}), "EG1108", f"{RULE}.retry.codes.0", "cannot be 200"),
    (GATEWAY, "TLSRoute", backend(name="a"), "EG1103", REF, "port` is missing"),
    (GATEWAY, "ReferenceGrant", {"spec": {"from": [{"kind": "A"}]}}, "EG1103", "spec.from.0", "namespace` is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("api_version", "kind", "data", "code", "place", "message"), WRONG)
def test_an_error_is_reported_at_its_place_and_the_object_left_out(
    api_version: str, kind: str, data: dict[str, object], code: str, place: str, message: str
) -> None:
    (found,) = errors(api_version, kind, "x", None, **data)
    assert found.span is not None
    assert (found.code.id, found.span.underlined) == (code, place)
    assert message in found.message


def test_all_errors_of_an_object_are_reported_at_once() -> None:
    found = errors(
        "v1",
        "Pod",
        "x",
        metadata={"labels": {"a": 1, "b": "ok", "c": False}},
        spec={
            "containers": [{"ports": [{"containerPort": 0}, {"containerPort": "x", "protocol": "ip"}]}],
            "serviceAccountName": [],
        },
    )
    assert sorted(d.code.id for d in found) == ["EG1101", "EG1101", "EG1102", "EG1104", "EG1104", "EG1106"]


@pytest.mark.parametrize("value", [1, True, 1.5])
def test_an_unquoted_label_gets_its_own_text_in_quotes_as_help(value: object) -> None:
    (found,) = errors("v1", "Pod", "x", metadata={"labels": {"v": value}})
    assert found.help == 'write `v: "metadata.labels.v"`'  # in these manifests each value is its own path


def test_a_label_that_no_quotes_would_mend_is_to_be_a_string() -> None:
    (found,) = errors("v1", "Pod", "x", metadata={"labels": {"v": []}})
    assert found.help == "write a string, or remove `v`"


HELPS: list[tuple[str, dict[str, object], str]] = [
    ("Gateway", listener(hostname="*"), "leave the hostname out: none means any"),
    ("Gateway", listener(hostname="A.com"), "write a.com"),
    ("Gateway", listener(hostname="https://a.com"), "without scheme, port and path"),
    ("Gateway", routes_from(origin="all"), "write All"),
    ("Gateway", routes_from(origin="Some"), "write Same"),
    ("Gateway", routes_from(origin="X"), "write Same, All or Selector"),
    ("Gateway", routes_from({"app": "a"}), "under matchLabels or matchExpressions"),
    ("HTTPRoute", route_match(path="/a"), "write `path: {value: /a}`"),
    ("HTTPRoute", route_match(path={"value": "a"}), "write /a"),
    ("HTTPRoute", route_match(path={"value": "/a//b"}), "write /a/b"),
    ("HTTPRoute", route_match(path={"value": "/a#b"}), "write /a"),
    ("HTTPRoute", route_match(method="get"), "write GET"),
    ("HTTPRoute", route_match(path=regex(r"(a)\1")), "the syntax of RE2"),
    ("HTTPRoute", backend(name="a", port=1, weight=1.5), "between 0 and 1000000"),
    ("GRPCRoute", route_match(method="Get"), "write `method: {method: Get}`"),
    ("GRPCRoute", call(), "write a service, a method or both; or remove `method`, to match every call"),
    ("GRPCRoute", call(method=""), "leave it out: none means any"),
    ("GRPCRoute", call(service="/a.B/Get"), "write letters, digits, _ and dots, as in helloworld.Greeter"),
    ("GRPCRoute", call(method="a.B"), "write letters, digits and _, as in SayHello"),
    ("GRPCRoute", call(type="exact", method="A"), "write Exact"),
]


@pytest.mark.parametrize(("kind", "data", "help_"), HELPS)
def test_errors_in_a_gateway_or_a_route_have_a_remedy(kind: str, data: dict[str, object], help_: str) -> None:
    (found,) = errors(GATEWAY, kind, "x", None, **data)
    assert found.help is not None
    assert help_ in found.help


def test_every_code_has_its_own_number_and_is_provoked_above() -> None:
    catalogue = [code for code in vars(codes).values() if isinstance(code, Code)]
    numbers = {code.id for code in catalogue}
    assert len(numbers) == len(catalogue)
    assert numbers == {code for _, _, _, code, _, _ in WRONG}
    assert all(number.startswith("EG11") for number in numbers)


@pytest.mark.parametrize(
    ("kind", "name", "namespace", "place"),
    [
        ("Pod", "a/b", "c", "metadata.name"),
        ("Pod", "web (Job)", "c", "metadata.name"),
        ("Pod", "", "c", "metadata.name"),
        ("Pod", "a", "b/c", "metadata.namespace"),
        ("Pod", "a", "b.c", "metadata.namespace"),
        ("Namespace", "a.b", None, "metadata.name"),
        ("ServiceAccount", "A", "c", "metadata.name"),
    ],
)
def test_a_name_that_could_read_like_another_is_refused(
    kind: str, name: str, namespace: str | None, place: str
) -> None:
    (found,) = errors("v1", kind, name, namespace)
    assert found.span is not None
    assert (found.code.id, found.span.underlined) == ("EG1107", place)
