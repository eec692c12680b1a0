"""What the drafts demand of a policy beyond the types of its fields. Each function is one demand.

They are hung on the shapes in `shapes.py`, and are called only where the fields that they read have the right type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from eastgate.diagnostics import Code
from eastgate.dialects.gep3779 import codes
from eastgate.schema import Check
from eastgate.settings import MeshMode, Settings
from eastgate.sources.node import Node
from eastgate.world.identity import spiffe_problem
from eastgate.world.names import dns_label_problem, dns_subdomain_problem

__all__ = ["Subject"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What the checks need to know beside the document itself."""

    settings: Settings


Checking = Check[Subject]

_ROUTES = ("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute")


# Targets


def target(ref: Node, to: Checking) -> None:
    """What may be targeted, and by what."""
    kind = ref["kind"]
    if kind.text in _ROUTES:
        to.report(
            codes.ROUTE_TARGET,
            f"a policy cannot target a {kind.text}",
            kind,
            help="“we don't have the route information that was responsible for the routing”: "
            "target Pods with a selector instead",
        )
    elif kind.text == "Namespace":
        to.report(
            codes.NAMESPACE_TARGET,
            "a policy cannot target a Namespace",
            kind,
            help="“this gives the (confusing) impression that Gateways are targeted as well”: "
            "write kind: Pod and selector: {} for every pod of the policy's namespace",
        )
    elif kind.text not in ("Pod", "Service"):
        to.report(codes.TARGET_KIND, f"a policy cannot target a {kind.text}", kind, help="write Pod, or Service")
    else:
        _core_group(ref, to)
        (_pod_target if kind.text == "Pod" else _service_target)(ref, to)


def _core_group(ref: Node, to: Checking) -> None:
    group = ref.get("group")
    if group is not None and group.text not in ("", "core"):
        to.report(
            codes.TARGET_GROUP, f"{ref['kind'].text} is not in the group `{group.text}`", group, help='write group: ""'
        )


def _pod_target(ref: Node, to: Checking) -> None:
    if "selector" not in ref:
        to.report(
            codes.POD_NEEDS_SELECTOR,
            "a Pod target needs `selector`",
            ref,
            help="write selector: {matchLabels: {..}}, or selector: {} for every pod of the policy's namespace",
        )
    if "name" in ref:
        to.report(
            codes.POD_HAS_NAME,
            "a Pod target has no `name`",
            ref.key_span("name"),
            help="select the pod by its labels",
        )


def _service_target(ref: Node, to: Checking) -> None:
    if "selector" in ref:
        to.report(
            codes.SELECTOR_NOT_ON_POD,
            "Selector may only be set when targeting Pods.",
            ref.key_span("selector"),
            help="name the Service, or write kind: Pod",
        )
    if "name" not in ref:
        to.report(
            codes.SERVICE_NEEDS_NAME, "a Service target needs `name`", ref, help="write name: <the Service's name>"
        )


def some_target(refs: Node, to: Checking) -> None:
    """An empty list of targets is not a namespace-wide policy."""
    if not list(refs):
        to.report(codes.NO_TARGET, "a policy needs a target", refs, help=NO_TARGET_HELP)


NO_TARGET_HELP = "for every pod of the policy's namespace write targetRefs: [{kind: Pod, selector: {}}]"


def pod_stands_alone(refs: Node, to: Checking) -> None:
    """X kind: where a Pod is targeted there is one targetRef."""
    some_target(refs, to)
    targets = list(refs)
    pods = [ref for ref in targets if (kind := ref.get("kind")) is not None and kind.value == "Pod"]
    if pods and len(targets) > 1:
        to.report(
            codes.ONE_POD_TARGET,
            "a policy that targets Pods has exactly one targetRef",
            targets[1],
            help="write one selector that selects all of them, or one policy for each",
        )


# Levels


def level_of(spec: Node) -> str:
    """The level as a comparable word; NETWORK where none is written."""
    level = spec.get("enforcementLevel")
    return level.value.casefold() if level is not None and isinstance(level.value, str) else "network"


def no_application_attributes_at_network(spec: Node, to: Checking) -> None:
    """A rule with L7 attributes on a NETWORK policy would silently be wider than written."""
    if level_of(spec) == "application":
        return
    for rule in spec.get("rules") or ():
        if "applicationAttributes" in rule:
            to.report(
                codes.APPLICATION_ATTRIBUTES_AT_NETWORK,
                "`applicationAttributes` on a NETWORK policy",
                rule.key_span("applicationAttributes"),
                help="write enforcementLevel: APPLICATION, or remove the attributes",
            )


def target_fits_level(spec: Node, to: Checking) -> None:
    """The draft's “VAP Validation” list; only where the level is written."""
    if "enforcementLevel" not in spec:
        return
    application = level_of(spec) == "application"
    ambient = to.context.settings.mesh_mode is MeshMode.AMBIENT
    for ref in spec.get("targetRefs") or ():
        kind = ref.get("kind")
        if kind is None:
            continue
        if not application and kind.value == "Service":
            to.report(
                codes.NETWORK_NEEDS_SELECTOR,
                "a NETWORK policy must use a label selector, not a Service",
                kind,
                help="write kind: Pod and a selector",
            )
        elif application and not ambient and kind.value == "Service":
            to.report(
                codes.SIDECAR_APPLICATION_SERVICE,
                "in a sidecar mesh an APPLICATION policy cannot target a Service",
                kind,
                help="write kind: Pod and a selector, or set meshMode: ambient",
            )
        elif application and ambient and kind.value == "Pod":
            to.report(
                codes.AMBIENT_APPLICATION_SELECTOR,
                "in an ambient mesh an APPLICATION policy cannot use a label selector",
                kind,
                help="write kind: Service and its name, or set meshMode: sidecar",
            )


# Rules


def deny_has_rules(rules_field: str) -> Callable[[Node, Checking], None]:
    """A DENY policy without rules denies nothing."""

    def rule(spec: Node, to: Checking) -> None:
        rules = spec.get(rules_field)
        if spec["action"].text == "DENY" and (rules is None or not list(rules)):
            to.report(
                codes.DENY_WITHOUT_RULES,
                "a DENY policy without rules denies nothing",
                rules or spec["action"],
                help=f"to deny everything write {rules_field}: [{{}}]",
            )

    return rule


def service_account(node: Node, to: Checking) -> None:
    """`<namespace>/<name>`, `<namespace>/*` or `<name>`."""
    _service_account(node, to, bare=None)


def service_account_anywhere(node: Node, to: Checking) -> None:
    """In a cluster policy: `<namespace>/<name>` or `<namespace>/*`."""
    _service_account(node, to, bare=codes.BARE_SERVICE_ACCOUNT)


def _service_account(node: Node, to: Checking, bare: Code | None) -> None:
    if node.text == "*":
        to.report(
            codes.EVERY_SERVICE_ACCOUNT,
            "`*` alone is not a service account",
            node,
            help="write <namespace>/* for each namespace, or leave the source out to match anyone",
        )
        return
    namespace, slash, name = node.text.rpartition("/")
    problem = (dns_label_problem(namespace) if slash else None) or (
        None if slash and name == "*" else dns_subdomain_problem(name)
    )
    if problem is not None:
        to.report(
            codes.SERVICE_ACCOUNT,
            f"`{node.text}` is not a service account: {problem}",
            node,
            help="write <namespace>/<name>, <namespace>/* or <name>",
        )
    elif not slash and bare is not None:
        to.report(bare, f"`{node.text}` has no namespace", node, help=f"write <namespace>/{node.text}")


def service_account_v1alpha1(node: Node, to: Checking) -> None:
    """In the Provisional draft: `<namespace>/<name>` and nothing else."""
    namespace, slash, name = node.text.rpartition("/")
    problem = "there is no namespace" if not slash else dns_label_problem(namespace)
    if problem is None and name == "*":
        problem = "it is a whole namespace"
    problem = problem or dns_subdomain_problem(name)
    if problem is not None:
        to.report(
            codes.SERVICE_ACCOUNT_V1ALPHA1,
            f"`{node.text}` is not <namespace>/<name>: {problem}",
            node,
            help="name a whole namespace in `namespaces`" if name == "*" and slash else "write <namespace>/<name>",
        )


def spiffe_id(node: Node, to: Checking) -> None:
    """A full SPIFFE ID."""
    problem = spiffe_problem(node.text)
    if problem is not None:
        to.report(
            codes.SPIFFE_ID,
            f"`{node.text}` is not a SPIFFE ID: {problem}",
            node,
            help="write spiffe://<trust domain>/<path>, such as spiffe://cluster.local/ns/<namespace>/sa/<name>",
        )


def one_list(source: Node, to: Checking) -> None:
    """v1alpha1: exactly one of the three lists, and something in it."""
    written = [name for name in ("identities", "serviceAccounts", "namespaces") if name in source]
    if len(written) != 1 or not list(source[written[0]]):
        to.report(
            codes.ONE_SOURCE_LIST,
            "Exactly one of identities, serviceAccounts, or namespaces must be specified.",
            source,
            help="write one source for each list" if len(written) > 1 else "write the one list that names the source",
        )


def not_empty(field: str) -> Callable[[Node, Checking], None]:
    """v1alpha1: an empty list says the opposite of what its successor says."""

    def rule(node: Node, to: Checking) -> None:
        if not list(node):
            to.report(
                codes.EMPTY_LIST_V1ALPHA1,
                f"`{field}` is empty",
                node,
                help=f"leave `{field}` out to match everything",
            )

    return rule


def source_union(source: Node, to: Checking) -> None:
    """X kind: the type of a source and its member go together."""
    wanted, other = ("spiffe", "serviceAccount") if source["type"].text == "SPIFFE" else ("serviceAccount", "spiffe")
    if wanted not in source:
        to.report(
            codes.SOURCE_MEMBER_MISSING,
            f"a source of type {source['type'].text} needs `{wanted}`",
            source,
            help=f"write {wanted}, or change the type",
        )
    if other in source:
        to.report(
            codes.SOURCE_MEMBER_FOREIGN,
            f"`{other}` does not belong in a source of type {source['type'].text}",
            source.key_span(other),
            help="write one source for each",
        )


def account_name(node: Node, to: Checking) -> None:
    """X kind: the name of a service account, or `*` for all of the namespace."""
    problem = None if node.text == "*" else dns_subdomain_problem(node.text)
    if problem is not None:
        to.report(
            codes.SERVICE_ACCOUNT,
            f"`{node.text}` is not the name of a service account: {problem}",
            node,
            help='write its name, or "*" for every service account of the namespace',
        )


def path(node: Node, to: Checking) -> None:
    """Exact, or one `*` at its end or its start."""
    text = node.text
    middle = text.removeprefix("*") if text.startswith("*") else text.removesuffix("*")
    if not text:
        problem, way_out = "it is empty", "write /, or a path such as /api/*"
    elif "*" in middle:
        problem, way_out = "`*` may stand once, at its end or its start", "write /api/*, or */suffix"
    elif not text.startswith(("/", "*")):
        problem, way_out = "it does not begin with /", f"write /{text}"
    elif re.search(r"[?#]", text):
        problem, way_out = "paths are compared without query and fragment", f"write {re.split('[?#]', text)[0]}"
    else:
        return
    to.report(codes.PATH_PATTERN, f"`{text}` is not a path: {problem}", node, help=way_out)


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")


def method(node: Node, to: Checking) -> None:
    """An HTTP token; methods are case-sensitive."""
    if not _TOKEN.fullmatch(node.text) or "*" in node.text:
        to.report(
            codes.METHOD,
            f"`{node.text}` is not an HTTP method",
            node,
            help=f"write one such as {', '.join(_METHODS[:4])}",
        )
    elif node.text.upper() in _METHODS and node.text not in _METHODS:
        to.report(
            codes.METHOD_CASE,
            f"`{node.text}` does not match {node.text.upper()}",
            node,
            help=f"write {node.text.upper()}",
        )
