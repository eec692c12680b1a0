"""Checks beyond the types of fields: those of Linkerd's admission webhook, of its CRDs and of the proposal.

Each function is one check. `shapes.py` attaches the checks to the shapes. The checks of routes are in
`route_shapes.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.basics.diagnostics import Code, did_you_mean
from eastgate.cluster.resources import MODE
from eastgate.dialects.linkerd import codes
from eastgate.dialects.linkerd.model import (
    AUTHENTICATIONS,
    IDENTITIES,
    TARGETS,
    TARGETS_TODAY,
    GroupKind,
    canonical_kind,
    kind_if_readable,
    kind_text,
    namespace_of,
)
from eastgate.dialects.linkerd.values import Checking, network_of, port_problem
from eastgate.ir.addresses import Network
from eastgate.ir.labels import Operator
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import enumerated, quoted
from eastgate.reading.manifests.shapes.codes import NULL_VALUE

# Any resource


def check_no_mode(document: Node, to: Checking) -> None:
    """Report an audit mode on a resource that decides nothing by itself."""
    annotations = document["metadata"].get("annotations")
    mode = annotations.get(MODE) if annotations is not None else None
    if annotations is not None and mode is not None and mode.value == "audit":
        to.report(
            codes.MODE_WITHOUT_EFFECT,
            f"`{MODE}` has no effect here: this resource alone decides nothing",
            annotations.key_span(MODE),
            help="write it on the AuthorizationPolicy, the ServerAuthorization or the Server",
        )


def _refuse_kind(code: Code, problem: str, ref: Node, kinds: Iterable[GroupKind], to: Checking) -> None:
    """Report a kind that is not allowed; suggest another group or spelling."""
    kind, group = ref["kind"], ref.get("group")
    message = f"{problem}: {kind_text(canonical_kind(ref))}"
    homes = sorted(home for home, name in kinds if name.lower() == kind.text.lower())
    if homes:
        way_out = "write group: " + enumerated([home or '""' for home in homes], "or")
        to.report(code, message, group or kind, help=way_out)
        return
    near = did_you_mean(kind.text, {name for _, name in kinds})
    names = list(dict.fromkeys(name for _, name in kinds))
    to.report(code, message, kind, help=f"did you mean `{near}`?" if near else f"write {enumerated(names, 'or')}")


# AuthorizationPolicy


def check_target(ref: Node, to: Checking) -> None:
    """Report a target that neither Linkerd nor the proposal supports, or that only the proposal supports."""
    wanted = canonical_kind(ref)
    kind = ref["kind"]
    if wanted == ("", "Service"):
        to.report(
            codes.SERVICE_TARGET,
            "an AuthorizationPolicy may not target a Service, which is a distinctly client-centric concept",
            kind,
            help="a server cannot know which Service a connection targeted: target a Server, or the workload",
        )
    elif wanted not in TARGETS:
        _refuse_kind(codes.TARGET_KIND, "unsupported authorization target type", ref, TARGETS, to)
    elif wanted not in TARGETS_TODAY:
        to.report(
            codes.TARGET_NOT_IN_LINKERD,
            f"Linkerd refuses the target type {kind_text(wanted)} today",
            kind,
            help="for Linkerd as it runs target a Server, an HTTPRoute, a GRPCRoute or the Namespace",
        )


def check_own_namespace(document: Node, to: Checking) -> None:
    """Report a policy that targets another Namespace than its own."""
    ref = document["spec"].get("targetRef")
    name = ref.get("name") if ref is not None else None
    if ref is None or name is None or kind_if_readable(ref) != ("", "Namespace"):
        return
    own = namespace_of(document, to.context.namespace)
    if own is not None and isinstance(name.value, str) and name.value != own:
        message = f"cannot target another namespace: {name.value}"
        to.report(codes.OTHER_NAMESPACE, message, name, help=f"write name: {own}, or write the policy there")


def check_authentication(ref: Node, to: Checking) -> None:
    """Report a reference to an object that is no authentication."""
    kind = canonical_kind(ref)
    problem = "unsupported authentication kind(s)"
    if kind == ("", "Namespace"):
        way_out = "write a MeshTLSAuthentication with identityRefs: [{kind: Namespace, name: ..}], and refer to that"
        to.report(codes.AUTHENTICATION_KIND, f"{problem}: {kind_text(kind)}", ref["kind"], help=way_out)
    elif kind not in AUTHENTICATIONS:
        _refuse_kind(codes.AUTHENTICATION_KIND, problem, ref, AUTHENTICATIONS, to)


_IN_ONE_MESH = "a client must be ALL of them here; for ANY of several, name them in one MeshTLSAuthentication"
_IN_ONE_NETWORK = "a client must be in ALL of them here; for ANY of several, list them in one NetworkAuthentication"
_ONE_OF_A_KIND = {
    "MeshTLSAuthentication": _IN_ONE_MESH,
    "ServiceAccount": _IN_ONE_MESH,
    "NetworkAuthentication": _IN_ONE_NETWORK,
}


def check_one_of_a_kind(refs: Node, to: Checking) -> None:
    """Report several authentications of one kind: today's Linkerd takes one of each kind, the proposal requires all."""
    by_kind: dict[str, list[Node]] = {name: [] for name in _ONE_OF_A_KIND}
    for ref in refs:
        kind = kind_if_readable(ref)
        if kind in AUTHENTICATIONS:
            by_kind[kind[1]].append(ref)
    for name, way_out in _ONE_OF_A_KIND.items():
        if len(by_kind[name]) > 1:
            message = f"today's Linkerd refuses this: only a single {name} may be set"
            to.report(codes.SEVERAL_OF_A_KIND, message, by_kind[name][1], help=way_out)
    names = [*by_kind["MeshTLSAuthentication"][:1], *by_kind["ServiceAccount"][:1]]
    if len(names) > 1:
        message = "today's Linkerd refuses this: a MeshTLSAuthentication and ServiceAccount may not be set together"
        later = max(names, key=lambda ref: (ref.line, ref.column))
        to.report(codes.SEVERAL_OF_A_KIND, message, later, help=_IN_ONE_MESH)


# MeshTLSAuthentication


def check_identities_or_refs(spec: Node, to: Checking) -> None:
    """Report a spec with both lists, with neither, or with an empty one."""
    fields = [name for name in ("identities", "identityRefs") if name in spec]
    if len(fields) == 1 and list(spec[fields[0]]):
        return
    message = "exactly one of identities and identityRefs must be specified"
    if len(fields) > 1:
        at, way_out = spec.key_span(fields[1]), "write it in a second MeshTLSAuthentication"
    elif fields:
        message = f"`{fields[0]}` is empty, which Linkerd refuses"
        at, way_out = spec[fields[0]].span, "name at least one client; to authorize no client, remove the whole policy"
    else:
        at, way_out = spec.span, "write identities: [..], or identityRefs: [{kind: ServiceAccount, name: ..}]"
    to.report(codes.IDENTITIES_OR_REFS, message, at, help=way_out)


def check_identity_ref(ref: Node, to: Checking) -> None:
    """Report a reference that is neither to a ServiceAccount nor to a Namespace."""
    kind = canonical_kind(ref)
    if kind not in IDENTITIES:
        _refuse_kind(codes.IDENTITY_REF_KIND, "invalid identity target kind", ref, IDENTITIES, to)
    elif kind == ("", "Namespace") and "namespace" in ref:
        to.report(
            codes.NAMESPACE_IN_NAMESPACE,
            "Namespace identity_ref is cluster-scoped and cannot have a namespace",
            ref.key_span("namespace"),
            help="remove it: `name` is the namespace",
        )


# Networks


def check_networks(networks: Node, to: Checking) -> None:
    """Report an empty list of networks."""
    if not list(networks):
        message = "at least one network must be specified"
        to.report(codes.NO_NETWORK, message, networks, help="for every address write {cidr: 0.0.0.0/0}, {cidr: '::/0'}")


def check_exceptions(entry: Node, to: Checking) -> None:
    """Report an exception that covers its whole network, or that is outside of the network."""
    cidr_text = entry["cidr"].text
    cidr = network_of(entry["cidr"])
    for node in entry.get("except") or ():
        exception = network_of(node) if isinstance(node.value, str) else None
        if cidr is None or exception is None:
            continue
        if _covers(exception, cidr):
            message = f"cidr '{cidr_text}' is completely negated by exception '{node.text}'"
            to.report(codes.NEGATED, message, node, help="remove the network, or write a smaller exception")
        elif not _covers(cidr, exception):
            message = f"cidr '{cidr_text}' does not include exception '{node.text}'"
            to.report(
                codes.EXCEPTION_OUTSIDE, message, node, help="remove it, or write it at the network that contains it"
            )


def _covers(outer: Network, inner: Network) -> bool:
    return outer.version == inner.version and outer.prefixlen <= inner.prefixlen and inner.network_address in outer


# Server

_WRITE_PORT = "write port: <the number or the name of a port>"


def check_server_port(document: Node, to: Checking) -> None:
    """Report a port that is neither a number nor a name."""
    port = document["spec"].get("port")
    match port.value if port is not None else 1:
        case None:
            to.report(NULL_VALUE, "`port` has no value", port or document, help=_WRITE_PORT)
        case bool() | float() | dict() | list() as value if port is not None:
            way_out = "write a Server for each port" if isinstance(value, list) else _WRITE_PORT
            message = (
                f"{value} is not a port" if isinstance(value, float) else f"a Server has one port, not {port.kind}"
            )
            to.report(codes.SERVER_PORT, message, port, help=way_out)
        case int(number) if port is not None and not 1 <= number <= 65535:
            to.report(codes.SERVER_PORT, f"{number} is not between 1 and 65535", port, help=_WRITE_PORT)
        case str(name) if port is not None:
            problem = port_problem(name)
            if problem is not None:
                reason, way_out = problem
                to.report(codes.SERVER_PORT, f"no port has the name {quoted(name)}: {reason}", port, help=way_out)


def check_selector(spec: Node, to: Checking) -> None:
    """Report a Server without a selector."""
    if "podSelector" not in spec and "externalWorkloadSelector" not in spec:
        to.report(
            codes.ONE_SELECTOR,
            "a Server needs a selector",
            spec,
            help="write podSelector: {matchLabels: {..}}, or podSelector: {} for every pod of the namespace",
        )


def check_single_selector(spec: Node, to: Checking) -> None:
    """Report a Server that selects both pods and external workloads."""
    if "podSelector" in spec and "externalWorkloadSelector" in spec:
        later = max(
            (spec.key_span(name) for name in ("podSelector", "externalWorkloadSelector")),
            key=lambda span: (span.line, span.column),
        )
        message = "exactly one of podSelector and externalWorkloadSelector must be specified"
        to.report(codes.ONE_SELECTOR, message, later, help="write a Server for each")


def check_expression(node: Node, to: Checking) -> None:
    """Report an expression that Linkerd accepts, but with another meaning than it seems to have."""
    operator, values = node["operator"].text, node.get("values")
    lists = operator in (Operator.IN, Operator.NOT_IN)
    if lists and values is not None and not list(values):
        everything = "matches everything" if operator == Operator.NOT_IN else "matches nothing"
        to.report(
            codes.ILLEGAL_EXPRESSION, f"`{operator}` of no values {everything}", values, help="write values: [..]"
        )
    elif lists != (values is not None):
        message = f"`{operator}` {'without' if lists else 'with'} values matches nothing in Linkerd"
        at, way_out = (node["operator"].span, "write values: [..]") if lists else (node.key_span("values"), "remove it")
        to.report(codes.ILLEGAL_EXPRESSION, message, at, help=way_out)


# ServerAuthorization


def check_server(server: Node, to: Checking) -> None:
    """Report a server with both name and selector, or with neither."""
    fields = [name for name in ("name", "selector") if name in server]
    if len(fields) != 1:
        at = server.key_span("selector") if fields else server.span
        message = "exactly one of name and selector must be specified"
        to.report(codes.ONE_SERVER, message, at, help="write name: <Server>, or selector: {matchLabels: {..}}")


_NOBODY = "this authorizes no clients, and Linkerd ignores it"


def check_client(client: Node, to: Checking) -> None:
    """Report clients that are both unauthenticated and of the mesh, or neither."""
    unauthenticated = _is_true(client, "unauthenticated")
    if "meshTLS" in client and unauthenticated:
        message = "`unauthenticated` must be false if `mesh_tls` is specified"
        way_out = "remove one of the two: unauthenticated clients, or those of meshTLS"
        to.report(codes.UNAUTHENTICATED_MESH, message, client["unauthenticated"], help=way_out)
    elif "meshTLS" not in client and not unauthenticated:
        way_out = 'write unauthenticated: true, or meshTLS: {identities: ["*"]}'
        to.report(codes.NO_CLIENT, _NOBODY, client, help=way_out)


def check_mesh_clients(mesh: Node, to: Checking) -> None:
    """Report mesh clients that are both any client with TLS and a list of clients, or neither."""
    fields = [name for name in ("identities", "serviceAccounts") if list(mesh.get(name) or ())]
    anybody = _is_true(mesh, "unauthenticatedTLS")
    if anybody and fields:
        message = "`unauthenticatedTLS` must be false if any `identities` or `service_accounts` is specified"
        way_out = f"remove it, or remove `{fields[0]}`"
        to.report(codes.UNAUTHENTICATED_TLS, message, mesh["unauthenticatedTLS"], help=way_out)
    elif not anybody and not fields:
        to.report(codes.NO_CLIENT, _NOBODY, mesh, help='for every client of the mesh write identities: ["*"]')


def _is_true(node: Node, field: str) -> bool:
    value = node.get(field)
    return value is not None and value.value is True
