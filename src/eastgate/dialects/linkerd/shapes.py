"""The resources of policy.linkerd.io, field by field as in their CRDs. Routes are in `route_shapes.py`."""

from __future__ import annotations

from dataclasses import replace

from eastgate.cluster.resources import dns_label, dns_subdomain, label_selector, resource
from eastgate.dialects.linkerd import codes, validation, values
from eastgate.dialects.linkerd.model import Protocol
from eastgate.dialects.linkerd.settings import InboundPolicy
from eastgate.reading.manifests.shapes import Anything, Choice, Field, Flag, ListOf, Record, Text
from eastgate.reading.manifests.shapes.codes import UNKNOWN_FIELD
from eastgate.settings import Settings

Shape = Record[Settings]

_selector: Shape = label_selector(validation.check_expression)
_name: Text[Settings] = dns_subdomain("a name")
_group: Text[Settings] = Text("a group")
_kind: Text[Settings] = Text("a kind")

_network: Shape = Record(
    "a network",
    {
        "cidr": Field(Text("a network", values.check_network), required=True, help="write cidr: 10.0.0.0/8"),
        "except": Field(ListOf(Text("a network", values.check_network), "a list of networks")),
    },
    rules=(validation.check_exceptions,),
    otherwise="write {cidr: .., except: [..]}",
)


# Server

_SINCE = {"externalWorkloadSelector": "v1beta2", "accessPolicy": "v1beta3"}  # every version has the other fields
_OTHER_PROTOCOLS = {
    "HTTP": (codes.PROXY_PROTOCOL, "write HTTP/1 or HTTP/2, or leave it out to let the proxy detect the protocol"),
    "TCP": (codes.PROXY_PROTOCOL, "write opaque"),
    "HTTPS": (codes.PROXY_PROTOCOL, "write TLS"),
}
_EXPECTED = {
    "ALLOW": (
        codes.ACCESS_POLICY,
        "for every client write all-unauthenticated; for clients of the mesh write all-authenticated",
    ),
    "NONE": (codes.ACCESS_POLICY, "write deny"),
    "ALL": (codes.ACCESS_POLICY, "write all-unauthenticated"),
}


def server(version: str) -> Shape:
    """Return the shape of a Server in one version. Older versions lack some fields."""
    fields: dict[str, Field[Settings]] = {
        "port": Field(Anything(), required=True, help="write port: <the number or the name of a port>"),
        "podSelector": Field(_selector, help="write podSelector: {matchLabels: {..}}"),
        "proxyProtocol": Field(Choice(tuple(Protocol), codes.PROXY_PROTOCOL, reasons=_OTHER_PROTOCOLS)),
        "externalWorkloadSelector": Field(_selector, help="write externalWorkloadSelector: {matchLabels: {..}}"),
        "accessPolicy": Field(Choice(tuple(InboundPolicy), codes.ACCESS_POLICY, reasons=_EXPECTED)),
    }
    foreign = {
        name: (codes.LATER_VERSION, f"it came with {since}: write apiVersion: policy.linkerd.io/v1beta3")
        for name, since in _SINCE.items()
        if version < since
    }
    one_selector = () if "externalWorkloadSelector" in foreign else (validation.check_single_selector,)
    spec: Shape = Record(
        "spec",
        {name: of for name, of in fields.items() if name not in foreign},
        rules=(validation.check_selector, *one_selector),
        misspelt={"selector": "podSelector", "protocol": "proxyProtocol", "ports": "port"},
        foreign=foreign,
    )
    return replace(resource("Server", spec), rules=(validation.check_server_port,))


# ServerAuthorization

_account: Shape = Record(
    "a service account",
    {
        "name": Field(
            values.name_beside_namespace(dns_label("a name")), required=True, help="write name: <the service account>"
        ),
        "namespace": Field(dns_label("a namespace")),
    },
    otherwise="write {name: .., namespace: ..}",
)
_mesh: Shape = Record(
    "meshTLS",
    {
        "unauthenticatedTLS": Field(Flag()),
        "identities": Field(ListOf(Text("an identity", values.check_dns_identity), "a list of identities")),
        "serviceAccounts": Field(ListOf(_account, "a list of service accounts")),
    },
    rules=(validation.check_mesh_clients,),
    misspelt={"unauthenticated": "unauthenticatedTLS", "serviceAccount": "serviceAccounts", "identity": "identities"},
)
_client: Shape = Record(
    "client",
    {
        "networks": Field(ListOf(_network, "a list of networks")),
        "unauthenticated": Field(Flag()),
        "meshTLS": Field(_mesh),
    },
    rules=(validation.check_client,),
    misspelt=dict.fromkeys(("meshTls", "mtls", *_mesh.fields), "meshTLS"),
    advice={name: f"indent it: `{name}` belongs in `meshTLS`" for name in _mesh.fields},
)
_server: Shape = Record(
    "server", {"name": Field(dns_label("a name")), "selector": Field(_selector)}, rules=(validation.check_server,)
)
SERVER_AUTHORIZATION: Shape = resource(
    "ServerAuthorization",
    Record(
        "spec",
        {
            "server": Field(_server, required=True, help="write server: {name: <Server>}"),
            "client": Field(_client, required=True, help="write client: {meshTLS: {..}}"),
        },
    ),
)


# AuthorizationPolicy

_target: Shape = Record(
    "a target reference",
    {
        "group": Field(_group),
        "kind": Field(_kind, required=True, help="write kind: Server"),
        "name": Field(_name, required=True, help="write name: <the target's name>"),
    },
    rules=(validation.check_target,),
    misspelt={"selector": "name", "matchLabels": "name"},
    advice=dict.fromkeys(
        ("selector", "matchLabels"), "write name: ..; a policy targets one resource, not by its labels"
    ),
    otherwise="write {group: .., kind: .., name: ..}",
    foreign={
        "namespace": (codes.OTHER_NAMESPACE, "remove it: a policy targets a resource of its own namespace"),
        "sectionName": (UNKNOWN_FIELD, "remove it: a Server is one port already"),
    },
)
_authentication: Shape = Record(
    "an authentication reference",
    {
        "group": Field(_group),
        "kind": Field(_kind, required=True, help="write kind: MeshTLSAuthentication"),
        "name": Field(
            values.name_beside_namespace(_name), required=True, help="write name: <the authentication's name>"
        ),
        "namespace": Field(dns_label("a namespace")),
    },
    rules=(validation.check_authentication,),
    otherwise="write {group: .., kind: .., name: .., namespace: ..}",
)
AUTHORIZATION_POLICY: Shape = replace(
    resource(
        "AuthorizationPolicy",
        Record(
            "spec",
            {
                "targetRef": Field(_target, required=True, help="write targetRef: {group: .., kind: .., name: ..}"),
                "requiredAuthenticationRefs": Field(
                    ListOf(_authentication, "a list of authentication references", validation.check_one_of_a_kind),
                    required=True,
                    help="write requiredAuthenticationRefs: [..]; the empty list allows every client",
                ),
            },
            misspelt={
                "targetRefs": "targetRef",
                "requiredAuthentications": "requiredAuthenticationRefs",
                "authenticationRefs": "requiredAuthenticationRefs",
            },
        ),
    ),
    rules=(validation.check_own_namespace,),
)


# Authentications

_identity_ref: Shape = Record(
    "an identity reference",
    {
        "group": Field(_group),
        "kind": Field(_kind, required=True, help="write kind: ServiceAccount"),
        "name": Field(
            values.name_beside_namespace(_name),
            required=True,
            help="write name: <the name>; for every account write kind: Namespace",
        ),
        "namespace": Field(dns_label("a namespace")),
    },
    rules=(validation.check_identity_ref,),
    otherwise="write {kind: .., name: .., namespace: ..}",
)
MESH_TLS_AUTHENTICATION: Shape = replace(
    resource(
        "MeshTLSAuthentication",
        Record(
            "spec",
            {
                "identities": Field(ListOf(Text("an identity", values.check_identity), "a list of identities")),
                "identityRefs": Field(ListOf(_identity_ref, "a list of identity references")),
            },
            rules=(validation.check_identities_or_refs,),
            misspelt={"identity": "identities", "identityRef": "identityRefs", "serviceAccounts": "identityRefs"},
        ),
    ),
    rules=(validation.check_no_mode,),
)
NETWORK_AUTHENTICATION: Shape = replace(
    resource(
        "NetworkAuthentication",
        Record(
            "spec",
            {
                "networks": Field(
                    ListOf(_network, "a list of networks", validation.check_networks),
                    required=True,
                    help="write networks: [{cidr: ..}]",
                )
            },
            misspelt={"network": "networks", "cidrs": "networks"},
        ),
    ),
    rules=(validation.check_no_mode,),
)
