"""What Linkerd's admission webhook, its CRDs and the proposal demand beyond the types of fields. Each function is one
demand; they are hung on the shapes in `shapes.py`, and see only fields of the right type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from eastgate.diagnostics import Code, did_you_mean
from eastgate.dialects.linkerd import codes
from eastgate.dialects.linkerd.refs import AUTHENTICATIONS, IDENTITIES, TARGETS, Kind, canonical, known
from eastgate.dialects.linkerd.values import Checking, Network, milliseconds, network_of
from eastgate.schema import enumerated, quoted
from eastgate.sources.node import Node
from eastgate.world.labels import Operator
from eastgate.world.patterns import pattern_problem

__all__ = ["Checking"]


# AuthorizationPolicy


def target(ref: Node, to: Checking) -> None:
    """Linkerd's four targets, and those of the proposal."""
    wanted = canonical(ref)
    kind = ref["kind"]
    if wanted == ("", "Service"):
        to.report(
            codes.SERVICE_TARGET,
            "an AuthorizationPolicy may not target a Service",
            kind,
            help="a server cannot know which Service a connection was meant for: target a Server, or the workload",
        )
    elif wanted not in TARGETS:
        _unknown(codes.TARGET_KIND, "unsupported authorization target type: {}", ref, TARGETS, to)
    elif TARGETS[wanted].only_proposed:
        to.report(
            codes.TARGET_NOT_IN_LINKERD,
            f"Linkerd refuses the target type {_shown(wanted)} today",
            kind,
            help="for Linkerd as it runs target a Server, an HTTPRoute, a GRPCRoute or the Namespace",
        )


def _unknown(code: Code, message: str, ref: Node, kinds: Iterable[Kind], to: Checking) -> None:
    kind, group = ref["kind"], ref.get("group")
    homes = sorted(home for home, name in kinds if name.lower() == kind.text.lower())
    if homes and group is not None:
        way_out = "write group: " + enumerated([home or '""' for home in homes], "or")
        to.report(code, message.format(_shown(canonical(ref))), group, help=way_out)
        return
    near = did_you_mean(kind.text, {name for _, name in kinds})
    way_out = f"did you mean `{near}`?" if near else f"write {enumerated(known(kinds), 'or')}"
    if homes:
        way_out = f"write group: {homes[0]}"
    to.report(code, message.format(_shown(canonical(ref))), kind, help=way_out)


def _shown(kind: Kind) -> str:
    group, name = kind
    return f"{name}.{group}" if group else name


def own_namespace(document: Node, to: Checking) -> None:
    """A policy that targets a Namespace targets its own."""
    ref = document["spec"].get("targetRef")
    if ref is None or "kind" not in ref or "name" not in ref:
        return
    namespace = document["metadata"].get("namespace")
    own = namespace.text if namespace is not None and isinstance(namespace.value, str) else "default"
    if canonical(ref) == ("", "Namespace") and ref["name"].text != own:
        name = ref["name"]
        to.report(
            codes.OTHER_NAMESPACE, f"cannot target another namespace: {name.text}", name, help=f"write name: {own}"
        )


def authentication(ref: Node, to: Checking) -> None:
    """What may be required."""
    if canonical(ref) not in AUTHENTICATIONS:
        _unknown(codes.AUTHENTICATION_KIND, "unsupported authentication kind(s): {}", ref, AUTHENTICATIONS, to)


_ONE_OF_A_KIND = {
    "MeshTLSAuthentication": "only a single MeshTLSAuthentication may be set",
    "ServiceAccount": "only a single ServiceAccount may be set",
    "NetworkAuthentication": "only a single NetworkAuthentication may be set",
}
_ALL_REQUIRED = "a client must meet all of them here; for ANY of several, name them in one MeshTLSAuthentication"


def one_of_a_kind(refs: Node, to: Checking) -> None:
    """Today's Linkerd takes one of each; the proposal requires all."""
    kinds = [(canonical(ref)[1], ref) for ref in refs]
    for name, said in _ONE_OF_A_KIND.items():
        found = [ref for kind, ref in kinds if kind == name]
        if len(found) > 1:
            to.report(codes.SEVERAL_OF_A_KIND, f"today's Linkerd refuses this: {said}", found[1], help=_ALL_REQUIRED)
    mesh = next((ref for kind, ref in kinds if kind == "MeshTLSAuthentication"), None)
    account = next((ref for kind, ref in kinds if kind == "ServiceAccount"), None)
    if mesh is not None and account is not None:
        said = "a MeshTLSAuthentication and ServiceAccount may not be set together"
        to.report(codes.SEVERAL_OF_A_KIND, f"today's Linkerd refuses this: {said}", account, help=_ALL_REQUIRED)


# MeshTLSAuthentication


def identities_or_refs(spec: Node, to: Checking) -> None:
    """Exactly one of the two lists, and something in it."""
    written = [name for name in ("identities", "identityRefs") if name in spec]
    if len(written) == 1 and list(spec[written[0]]):
        return
    if len(written) > 1:
        at, way_out = spec.key_span(written[1]), "write two MeshTLSAuthentications"
    elif written:
        at, way_out = spec[written[0]].span, f"name at least one in `{written[0]}`"
    else:
        at, way_out = spec.span, "write identities: [..], or identityRefs: [..]"
    to.report(
        codes.IDENTITIES_OR_REFS, "exactly one of identities and identityRefs must be specified", at, help=way_out
    )


def identity_ref(ref: Node, to: Checking) -> None:
    """A ServiceAccount, or a Namespace."""
    kind = canonical(ref)
    if kind not in IDENTITIES:
        _unknown(codes.IDENTITY_REF_KIND, "invalid identity target kind: {}", ref, IDENTITIES, to)
    elif kind == ("", "Namespace") and "namespace" in ref:
        to.report(
            codes.NAMESPACE_IN_NAMESPACE,
            "Namespace identity_ref is cluster-scoped and cannot have a namespace",
            ref.key_span("namespace"),
            help="remove it: its name is the namespace",
        )


# Networks


def some_network(networks: Node, to: Checking) -> None:
    """A NetworkAuthentication that names none."""
    if not list(networks):
        message = "at least one network must be specified"
        to.report(codes.NO_NETWORK, message, networks, help="for every address write 0.0.0.0/0 and ::/0")


def exceptions(entry: Node, to: Checking) -> None:
    """An exception takes away some of its network: not all of it, and nothing else."""
    cidr = network_of(entry["cidr"])
    for node in entry.get("except") or ():
        exception = network_of(node)
        if cidr is None or exception is None:
            continue
        if _covers(exception, cidr):
            message = f"cidr '{entry['cidr'].text}' is completely negated by exception '{node.text}'"
            to.report(codes.NEGATED, message, node, help="remove the network, or write a smaller exception")
        elif not _covers(cidr, exception):
            message = f"cidr '{entry['cidr'].text}' does not include exception '{node.text}'"
            to.report(codes.EXCEPTION_OUTSIDE, message, node, help="remove it, or write it in the network that has it")


def _covers(outer: Network, inner: Network) -> bool:
    return outer.version == inner.version and outer.prefixlen <= inner.prefixlen and inner.network_address in outer


# Server


def server_port(spec: Node, to: Checking) -> None:
    """A number, or a name."""
    port = spec["port"]
    value = port.value
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= 65535:
            message = f"{value} is not between 1 and 65535"
            to.report(codes.SERVER_PORT, message, port, help="write the number of a port, or its name")
    elif not isinstance(value, str) or not value:
        to.report(codes.SERVER_PORT, f"a port is a number or a name, not {port.kind}", port, help="write port: 8080")
    elif value.isdigit():
        to.report(
            codes.SERVER_PORT, f"no port has the name {quoted(value)}", port, help=f"write {value} without quotes"
        )


def one_selector(spec: Node, to: Checking) -> None:
    """Pods, or external workloads."""
    written = [name for name in ("podSelector", "externalWorkloadSelector") if name in spec]
    if len(written) > 1:
        message = "exactly one of podSelector and externalWorkloadSelector must be specified"
        to.report(codes.ONE_SELECTOR, message, spec.key_span(written[1]), help="write one Server for each")
    elif not written:
        to.report(
            codes.ONE_SELECTOR,
            "a Server needs a selector",
            spec,
            help="write podSelector: {matchLabels: {..}}, or podSelector: {} for every pod of the namespace",
        )


def legal_expression(node: Node, to: Checking) -> None:
    """What Linkerd accepts in a selector, and then never matches."""
    operator, values = node["operator"].text, node.get("values")
    lists = operator in (Operator.IN, Operator.NOT_IN)
    if lists != (values is not None):
        said = f"`{operator}` {'without' if lists else 'with'} values matches nothing in Linkerd"
        way_out = "write values: [..]" if lists else "remove values"
        to.report(codes.ILLEGAL_EXPRESSION, said, node, help=way_out)


# ServerAuthorization


def one_server(server: Node, to: Checking) -> None:
    """By name, or by labels."""
    written = [name for name in ("name", "selector") if name in server]
    if len(written) != 1:
        at = server.key_span("selector") if written else server.span
        message = "exactly one of name and selector must be specified"
        to.report(codes.ONE_SERVER, message, at, help="write name: <Server>, or selector: {matchLabels: {..}}")


def some_client(client: Node, to: Checking) -> None:
    """Unauthenticated clients, or clients of the mesh."""
    mesh, unauthenticated = client.get("meshTLS"), _is_true(client, "unauthenticated")
    if mesh is not None and unauthenticated:
        to.report(
            codes.UNAUTHENTICATED_MESH,
            "`unauthenticated` must be false if `mesh_tls` is specified",
            client["unauthenticated"],
            help="remove one of the two",
        )
    elif mesh is None and not unauthenticated:
        to.report(
            codes.NO_CLIENT,
            "this authorizes no clients, and Linkerd ignores it",
            client,
            help="write unauthenticated: true, or meshTLS: {..}",
        )


def mesh_clients(mesh: Node, to: Checking) -> None:
    """Everybody with TLS, or those who are named."""
    named = [name for name in ("identities", "serviceAccounts") if list(mesh.get(name) or ())]
    if _is_true(mesh, "unauthenticatedTLS") and named:
        to.report(
            codes.UNAUTHENTICATED_TLS,
            "`unauthenticatedTLS` must be false if any `identities` or `service_accounts` is specified",
            mesh["unauthenticatedTLS"],
            help="remove it, or remove those who are named",
        )
    elif not _is_true(mesh, "unauthenticatedTLS") and not named:
        message = "this authorizes no clients, and Linkerd ignores it"
        to.report(codes.NO_CLIENT, message, mesh, help='for every client of the mesh write identities: ["*"]')


def _is_true(node: Node, field: str) -> bool:
    found = node.get(field)
    return found is not None and found.value is True


# HTTPRoute


_HOSTNAME = re.compile(r"(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def hostname(node: Node, to: Checking) -> None:
    """A name, or `*.` and a name."""
    if not _HOSTNAME.fullmatch(node.text):
        lower = _HOSTNAME.fullmatch(node.text.lower()) is not None
        way_out = f"write {node.text.lower()}" if lower else "write a name such as www.example.com or *.example.com"
        to.report(codes.ROUTE_HOST, f"{quoted(node.text)} is not a hostname", node, help=way_out)


def parent(ref: Node, to: Checking) -> None:
    """What a parent needs to be of use."""
    kind = canonical(ref) if "kind" in ref else ("", "Gateway")
    if kind == ("policy.linkerd.io", "EgressNetwork") and "port" not in ref:
        to.report(
            codes.ROUTE_PARENT,
            "cannot target an EgressNetwork without specifying a port",
            ref["kind"],
            help="write port: <number>",
        )
    elif kind == ("policy.linkerd.io", "Server"):
        for field in ("port", "sectionName"):
            if field in ref:
                message = f"Linkerd ignores a route whose Server parent has `{field}`"
                to.report(codes.DROPPED_ROUTE, message, ref.key_span(field), help="remove it: a Server is one port")


def path(match: Node, to: Checking) -> None:
    """Absolute, or a regular expression."""
    value = match.get("value")
    kind = match.get("type")
    if value is None:
        return
    if kind is not None and kind.text == "RegularExpression":
        pattern(match, to)
    elif not value.text.startswith("/"):
        message = "HttpPathMatch paths must be absolute (begin with `/`)"
        to.report(codes.ROUTE_PATH, message, value, help=f"write /{value.text}")


def pattern(match: Node, to: Checking) -> None:
    """A value that is to be compared as an expression."""
    kind, value = match.get("type"), match.get("value")
    if kind is None or value is None or kind.text != "RegularExpression":
        return
    problem = pattern_problem(value.text)
    if problem is not None:
        to.report(
            codes.ROUTE_PATTERN,
            f"{quoted(value.text)} is not a regular expression: {problem}",
            value,
            help="write it in the syntax of RE2, which has no look-around and no back-references",
        )


def redirect_path(node: Node, to: Checking) -> None:
    """A full path or a prefix, which is absolute."""
    fields = ("replaceFullPath", "replacePrefixMatch")
    written = [name for name in fields if name in node]
    if len(written) != 1:
        message = "a redirect path has either replaceFullPath or replacePrefixMatch"
        to.report(codes.ROUTE_REDIRECT, message, node, help="write one of the two")
    for name in written:
        if not node[name].text.startswith("/"):
            message = "RequestRedirect filters may only contain absolute paths (starting with '/')"
            to.report(codes.ROUTE_REDIRECT, message, node[name], help=f"write /{node[name].text}")


def timeouts(node: Node, to: Checking) -> None:
    """Durations, of which the inner is not the longer."""
    found: dict[str, float] = {}
    for name in ("request", "backendRequest"):
        written = node.get(name)
        if written is None:
            continue
        duration = milliseconds(written.text)
        if duration is None:
            negative = written.text.startswith("-") and milliseconds(written.text[1:]) is not None
            message = (
                f"{name} timeout must not be negative" if negative else f"{quoted(written.text)} is not a duration"
            )
            to.report(codes.ROUTE_TIMEOUT, message, written, help="write a duration such as 10s")
        else:
            found[name] = duration
    if found.get("request") and found.get("backendRequest", 0) > found["request"]:
        inner, outer = node["backendRequest"], node["request"]
        message = f"backendRequest timeout ({inner.text}) must not be greater than request timeout ({outer.text})"
        to.report(codes.ROUTE_TIMEOUT, message, inner, help=f"write {outer.text} or less")


def at_most(limit: int, what: str) -> Callable[[Node, Checking], None]:
    """The bounds of the CRD."""

    def rule(entries: Node, to: Checking) -> None:
        if len(list(entries)) > limit:
            message = f"{len(list(entries))} {what}, and at most {limit} are allowed"
            to.report(codes.ROUTE_TOO_MANY, message, list(entries)[limit], help="write several routes")

    return rule
