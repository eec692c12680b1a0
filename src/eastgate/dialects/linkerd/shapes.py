"""The resources of policy.linkerd.io, field by field, as their CRDs have them."""

from __future__ import annotations

from dataclasses import replace

from eastgate.dialects.linkerd import codes, validation, values
from eastgate.dialects.linkerd.model import Protocol
from eastgate.schema import Anything, Choice, Field, Flag, ListOf, Record, Text, Whole
from eastgate.schema.codes import UNKNOWN_FIELD
from eastgate.schema.kubernetes import dns_label, dns_subdomain, label_selector, resource
from eastgate.settings import InboundPolicy, Settings

__all__ = [
    "AUTHORIZATION_POLICY",
    "HTTP_ROUTE",
    "MESH_TLS_AUTHENTICATION",
    "NETWORK_AUTHENTICATION",
    "SERVER_AUTHORIZATION",
    "server",
]

Shape = Record[Settings]

_selector: Shape = label_selector(validation.legal_expression)
_name: Text[Settings] = dns_subdomain("a name")
_group: Text[Settings] = Text("a group")
_kind: Text[Settings] = Text("a kind")
_identities: ListOf[Settings] = ListOf(Text("an identity", values.identity), "a list of identities")

_network: Shape = Record(
    "a network",
    {
        "cidr": Field(Text("a network", values.network), required=True, help="write cidr: 10.0.0.0/8"),
        "except": Field(ListOf(Text("a network", values.network), "a list of networks")),
    },
    rules=(validation.exceptions,),
)


# Server

_POD_SELECTOR = Field(_selector, help="write podSelector: {matchLabels: {..}}")
_NOT_YET = "write apiVersion: policy.linkerd.io/v1beta3"


def server(*, access_policy: bool, external_workloads: bool) -> Shape:
    """A Server, in a version that has these fields or has not."""
    fields: dict[str, Field[Settings]] = {
        "port": Field(Anything(), required=True, help="write port: <the number or the name of a port>"),
        "podSelector": _POD_SELECTOR,
        "proxyProtocol": Field(Choice(tuple(Protocol), codes.PROXY_PROTOCOL)),
    }
    foreign = {}
    if external_workloads:
        fields["externalWorkloadSelector"] = Field(
            _selector, help="write externalWorkloadSelector: {matchLabels: {..}}"
        )
    else:
        foreign["externalWorkloadSelector"] = (codes.LATER_VERSION, _NOT_YET)
    if access_policy:
        fields["accessPolicy"] = Field(Choice(tuple(InboundPolicy), codes.ACCESS_POLICY))
    else:
        foreign["accessPolicy"] = (codes.LATER_VERSION, _NOT_YET)
    return resource(
        "Server",
        Record(
            "spec",
            fields,
            rules=(validation.server_port, validation.one_selector),
            misspelt={"selector": "podSelector", "protocol": "proxyProtocol", "ports": "port"},
            foreign=foreign,
        ),
    )


# ServerAuthorization

_account: Shape = Record(
    "a service account",
    {
        "name": Field(_name, required=True, help="write name: <the service account>"),
        "namespace": Field(dns_label("a namespace")),
    },
)
SERVER_AUTHORIZATION: Shape = resource(
    "ServerAuthorization",
    Record(
        "spec",
        {
            "server": Field(
                Record(
                    "server",
                    {"name": Field(_name), "selector": Field(_selector)},
                    rules=(validation.one_server,),
                ),
                required=True,
                help="write server: {name: <Server>}",
            ),
            "client": Field(
                Record(
                    "client",
                    {
                        "networks": Field(ListOf(_network, "a list of networks")),
                        "unauthenticated": Field(Flag()),
                        "meshTLS": Field(
                            Record(
                                "meshTLS",
                                {
                                    "unauthenticatedTLS": Field(Flag()),
                                    "identities": Field(_identities),
                                    "serviceAccounts": Field(ListOf(_account, "a list of service accounts")),
                                },
                                rules=(validation.mesh_clients,),
                            )
                        ),
                    },
                    rules=(validation.some_client,),
                    misspelt={"meshTls": "meshTLS", "mtls": "meshTLS"},
                ),
                required=True,
                help="write client: {meshTLS: {..}}",
            ),
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
    rules=(validation.target,),
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
        "name": Field(_name, required=True, help="write name: <the authentication's name>"),
        "namespace": Field(dns_label("a namespace")),
    },
    rules=(validation.authentication,),
)
AUTHORIZATION_POLICY: Shape = replace(
    resource(
        "AuthorizationPolicy",
        Record(
            "spec",
            {
                "targetRef": Field(_target, required=True, help="write targetRef: {group: .., kind: .., name: ..}"),
                "requiredAuthenticationRefs": Field(
                    ListOf(_authentication, "a list of authentication references", validation.one_of_a_kind),
                    required=True,
                    help="write requiredAuthenticationRefs: [..]; the empty list lets everybody in",
                ),
            },
            misspelt={
                "targetRefs": "targetRef",
                "requiredAuthentications": "requiredAuthenticationRefs",
                "authenticationRefs": "requiredAuthenticationRefs",
            },
        ),
    ),
    rules=(validation.own_namespace,),
)


# Authentications

_identity_ref: Shape = Record(
    "an identity reference",
    {
        "group": Field(_group),
        "kind": Field(_kind, required=True, help="write kind: ServiceAccount"),
        "name": Field(_name, required=True, help="write name: <the name>; for every account write kind: Namespace"),
        "namespace": Field(dns_label("a namespace")),
    },
    rules=(validation.identity_ref,),
)
MESH_TLS_AUTHENTICATION: Shape = resource(
    "MeshTLSAuthentication",
    Record(
        "spec",
        {
            "identities": Field(_identities),
            "identityRefs": Field(ListOf(_identity_ref, "a list of identity references")),
        },
        rules=(validation.identities_or_refs,),
        misspelt={"identity": "identities", "identityRef": "identityRefs", "serviceAccounts": "identityRefs"},
    ),
)
NETWORK_AUTHENTICATION: Shape = resource(
    "NetworkAuthentication",
    Record(
        "spec",
        {
            "networks": Field(
                ListOf(_network, "a list of networks", validation.some_network),
                required=True,
                help="write networks: [{cidr: ..}]",
            )
        },
        misspelt={"network": "networks", "cidrs": "networks"},
    ),
)


# HTTPRoute

_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
_value_type = Choice(("Exact", "RegularExpression"))
_value_match: Shape = Record(
    "a match of a value",
    {
        "name": Field(Text("a name"), required=True),
        "type": Field(_value_type),
        "value": Field(Text("a value"), required=True),
    },
    rules=(validation.pattern,),
)
_match: Shape = Record(
    "a match",
    {
        "path": Field(
            Record(
                "path",
                {
                    "type": Field(Choice(("Exact", "PathPrefix", "RegularExpression"))),
                    "value": Field(Text("a path")),
                },
                rules=(validation.path,),
            )
        ),
        "headers": Field(ListOf(_value_match, "a list of headers")),
        "queryParams": Field(ListOf(_value_match, "a list of query parameters")),
        "method": Field(Choice(_METHODS)),
    },
)
_redirect: Shape = Record(
    "requestRedirect",
    {
        "scheme": Field(Choice(("http", "https"))),
        "hostname": Field(Text("a hostname")),
        "path": Field(
            Record(
                "path",
                {
                    "type": Field(Choice(("ReplaceFullPath", "ReplacePrefixMatch"))),
                    "replaceFullPath": Field(Text("a path")),
                    "replacePrefixMatch": Field(Text("a path")),
                },
                rules=(validation.redirect_path,),
            )
        ),
        "port": Field(Whole(1, 65535, what="a port")),
        "statusCode": Field(Whole(301, 308, what="a status")),
    },
)
_filter: Shape = Record(
    "a filter",
    {
        "type": Field(
            Choice(("RequestHeaderModifier", "ResponseHeaderModifier", "RequestRedirect")),
            required=True,
            help="write type: RequestHeaderModifier, ResponseHeaderModifier or RequestRedirect",
        ),
        "requestHeaderModifier": Field(Anything()),
        "responseHeaderModifier": Field(Anything()),
        "requestRedirect": Field(_redirect),
    },
)
_timeouts: Shape = Record(
    "timeouts",
    {"request": Field(Text("a duration")), "backendRequest": Field(Text("a duration"))},
    rules=(validation.timeouts,),
)
_rule: Shape = Record(
    "a rule",
    {
        "matches": Field(ListOf(_match, "a list of matches", validation.at_most(8, "matches"))),
        "filters": Field(ListOf(_filter, "a list of filters")),
        "backendRefs": Field(Anything()),
        "timeouts": Field(_timeouts),
        "name": Field(Text("a name")),
    },
    misspelt={"match": "matches", "filter": "filters"},
)
_parent: Shape = Record(
    "a parent reference",
    {
        "group": Field(_group),
        "kind": Field(_kind),
        "namespace": Field(dns_label("a namespace")),
        "name": Field(_name, required=True, help="write name: <the Server's name>"),
        "sectionName": Field(Text("a name")),
        "port": Field(Whole(1, 65535, what="a port")),
    },
    rules=(validation.parent,),
)
HTTP_ROUTE: Shape = resource(
    "HTTPRoute",
    Record(
        "spec",
        {
            "parentRefs": Field(ListOf(_parent, "a list of parent references")),
            "hostnames": Field(
                ListOf(
                    Text("a hostname", validation.hostname), "a list of hostnames", validation.at_most(16, "hostnames")
                )
            ),
            "rules": Field(ListOf(_rule, "a list of rules")),
        },
        misspelt={"parentRef": "parentRefs", "hostname": "hostnames", "hosts": "hostnames"},
    ),
)
