"""A small cluster for tests: pods of one namespace, and their policies."""

from __future__ import annotations

from eastgate.dialects.linkerd.model import GROUP

DEFAULT_POLICY = "config.linkerd.io/default-inbound-policy"
OPAQUE_PORTS = "config.linkerd.io/opaque-ports"
IDENTITY_PORTS = "config.linkerd.io/proxy-require-identity-inbound-ports"


def pod(name: str = "web", annotations: str = "{}", more: str = "", app: str = "web") -> str:
    """Return a pod with the ports http (80 and, in its second container, 81) and admin (90)."""
    return f"""---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, labels: {{app: {app}}}, annotations: {annotations}}}
spec:
  serviceAccountName: {name}
  containers:
  - name: one
    ports:
    - {{name: http, containerPort: 80}}
    - {{name: admin, containerPort: 90}}
    - {{name: dns, containerPort: 53, protocol: UDP}}
    {more}
  - name: two
    ports: [{{name: http, containerPort: 81}}]
"""


def namespace(annotations: str, name: str = "shop") -> str:
    return f"---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}, annotations: {annotations}}}\n"


def server(name: str = "web", spec: str = "port: 80", metadata: str = "", selector: str = "{}") -> str:
    return _resource("v1beta3", "Server", name, f"podSelector: {selector}, {spec}", metadata)


def server_authorization(name: str, client: str, server: str = "name: web", metadata: str = "") -> str:
    spec = f"server: {{{server}}}, client: {{{client}}}"
    return _resource("v1beta1", "ServerAuthorization", name, spec, metadata)


def policy(name: str, target: str, refs: str = "", metadata: str = "") -> str:
    spec = f"targetRef: {{{target}}}, requiredAuthenticationRefs: [{refs}]"
    return _resource("v1alpha1", "AuthorizationPolicy", name, spec, metadata)


def mesh(name: str, identities: str, namespace: str = "shop") -> str:
    return _resource("v1alpha1", "MeshTLSAuthentication", name, f"identities: [{identities}]", "", namespace)


def network(name: str, cidr: str, namespace: str = "shop") -> str:
    return _resource("v1alpha1", "NetworkAuthentication", name, f"networks: [{{cidr: '{cidr}'}}]", "", namespace)


def route(name: str, path: str, server: str = "web") -> str:
    parent = f"{{group: {GROUP}, kind: Server, name: {server}}}"
    spec = f"parentRefs: [{parent}], rules: [{{matches: [{{path: {{value: {path}}}}}]}}]"
    return _resource("v1beta3", "HTTPRoute", name, spec, "")


def gateway_route(name: str, path: str, server: str = "web") -> str:
    return route(name, path, server).replace(f"{GROUP}/v1beta3", "gateway.networking.k8s.io/v1")


def grpc_route(name: str, service: str, server: str = "web") -> str:
    parent = f"{{group: {GROUP}, kind: Server, name: {server}}}"
    spec = f"parentRefs: [{parent}], rules: [{{matches: [{{method: {{service: {service}}}}}]}}]"
    return _resource("v1", "GRPCRoute", name, spec, "").replace(f"{GROUP}/v1\n", "gateway.networking.k8s.io/v1\n")


def _resource(version: str, kind: str, name: str, spec: str, metadata: str, namespace: str = "shop") -> str:
    more = f", {metadata}" if metadata else ""
    head = f"apiVersion: {GROUP}/{version}\nkind: {kind}\nmetadata: {{name: {name}, namespace: {namespace}{more}}}"
    return f"---\n{head}\nspec: {{{spec}}}\n"


AUDIT = "annotations: {eastgate.dev/mode: audit}"
ON_SERVER = f"group: {GROUP}, kind: Server, name: web"
ON_NAMESPACE = "kind: Namespace, name: shop"
ON_ROUTE = f"group: {GROUP}, kind: HTTPRoute, name: api"
ON_ACCOUNT = "kind: ServiceAccount, name: web"
MESH_REF = f"{{group: {GROUP}, kind: MeshTLSAuthentication, name: clients}}"
NETWORK_REF = f"{{group: {GROUP}, kind: NetworkAuthentication, name: office}}"
