"""An external authorizer: Gateway API's HTTPExternalAuthFilter, field by field, and its demands."""

from __future__ import annotations

from eastgate.cluster.resources import dns_label
from eastgate.dialects.accesspolicy import codes, validation, values
from eastgate.dialects.accesspolicy.validation import Checking
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Cel, Choice, Field, ListOf, Record, Text, Whole, constraint
from eastgate.settings import Settings

PORT = Whole(1, 65535, what="a port")


@constraint(
    Cel("(self.protocol == 'GRPC') == has(self.grpc)", "grpc must be set where the protocol is GRPC, and only there"),
    Cel("(self.protocol == 'HTTP') == has(self.http)", "http must be set where the protocol is HTTP, and only there"),
)
def _protocol(node: Node, to: Checking) -> None:
    """Require the settings of the protocol, and of no other."""
    protocol = node["protocol"].text
    wanted, other = ("grpc", "http") if protocol == "GRPC" else ("http", "grpc")
    if other in node:
        message = f"protocol must be '{other.upper()}' when {other} is set"
        way_out = "remove one of them" if wanted in node else f"write protocol: {other.upper()}, or {wanted}: {{}}"
        to.report(codes.PROTOCOL, message, node.key_span(other), help=way_out)
    elif wanted not in node:
        message = f"{wanted} must be specified when protocol is set to '{protocol}'"
        to.report(codes.PROTOCOL, message, node["protocol"], help=f"write {wanted}: {{}}")


@constraint(
    Cel(
        "(!has(self.kind) || self.kind == 'Service') && (!has(self.group) || self.group in ['', 'core'])",
        "an external authorizer must be a Service",
    ),
    Cel("has(self.port)", "Must have port for Service reference"),
)
def _service(ref: Node, to: Checking) -> None:
    """Require a Service, with its port: nothing else can be asked."""
    kind, group = ref.get("kind"), ref.get("group")
    wrong = kind if kind is not None and kind.text != "Service" else None
    if wrong is None and group is not None and group.text not in ("", "core"):
        wrong = group
    if wrong is not None:
        message = "an external authorizer must be a Service"
        to.report(
            codes.AUTHORIZER, message, wrong, help="write the name and port of a Service; leave kind and group out"
        )
    elif "port" not in ref:
        to.report(codes.AUTHORIZER, "Must have port for Service reference", ref["name"], help="write port: ..")


_headers: ListOf[Settings] = ListOf(
    Text("the name of a header", values.header_name), "a list of headers", validation.no_duplicates
)
_backend_ref: Record[Settings] = Record(
    "backendRef",
    {
        "group": Field(Text("a group", served=253), about="The core group, ''."),
        "kind": Field(Text("a kind", served=63), about="Service, which is also the default."),
        "name": Field(
            dns_label("the name of a Service"), required=True, help="write name: ..", about="The name of the Service."
        ),
        "namespace": Field(
            dns_label("a namespace"),
            about="The namespace of the Service. Left out it is the policy's own; another one needs a ReferenceGrant.",
        ),
        "port": Field(PORT, help="write port: ..", about="The port of the Service."),
    },
    rules=(_service,),
)
_http: Record[Settings] = Record(
    "http",
    {
        "path": Field(
            Text("a path", values.prefix), about="What the authorizer finds before the path of each request."
        ),
        "allowedHeaders": Field(_headers, about="Headers of the request that the authorizer is shown."),
        "allowedResponseHeaders": Field(_headers, about="Headers of its answer that are added to the request."),
    },
)

EXTERNAL_AUTH: Record[Settings] = Record(
    "externalAuth",
    {
        "protocol": Field(
            Choice(("HTTP", "GRPC")),
            required=True,
            help="write protocol: HTTP, or protocol: GRPC",
            about="How the authorizer is asked.",
        ),
        "backendRef": Field(
            _backend_ref,
            required=True,
            help="write backendRef: {name: .., port: ..}",
            about="The Service that is asked.",
        ),
        "grpc": Field(
            Record(
                "grpc",
                {"allowedHeaders": Field(_headers, about="Headers of the request that the authorizer is shown.")},
            ),
            help="write grpc: {}",
            about="Settings of the protocol GRPC; {} takes the defaults.",
        ),
        "http": Field(_http, help="write http: {}", about="Settings of the protocol HTTP; {} takes the defaults."),
        "forwardBody": Field(
            Record(
                "forwardBody",
                {"maxSize": Field(Whole(0, 65535, what="a size in bytes"), about="How much of it, in bytes.")},
            ),
            about="Whether the authorizer is shown the body.",
        ),
    },
    rules=(_protocol,),
    misspelt={"backendRefs": "backendRef", "service": "backendRef"},
    advice={"service": "write backendRef: {name: .., port: ..}"},
)
