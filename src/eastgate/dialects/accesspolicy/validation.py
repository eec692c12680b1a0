"""Checks of an AccessPolicy beyond the types of its fields, from the proposal and the API. Each function is one check.

Checks of a record see only fields of the right types. Checks of a list, and of the whole spec, may see wrong entries,
which are reported already.
"""

from __future__ import annotations

from collections.abc import Callable

from eastgate.basics.diagnostics import did_you_mean
from eastgate.cluster.gateways import BACKEND_KINDS, GATEWAY_GROUP
from eastgate.dialects.accesspolicy import codes
from eastgate.dialects.accesspolicy.model import NETWORKING_GROUP, PROTOTYPE_GROUP
from eastgate.dialects.sources import TYPE_FITS_MEMBERS, members_of
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Cel, Check, Constraint, constraint, not_empty, quoted
from eastgate.settings import Settings

__all__ = ["GATEWAY_GROUP", "NETWORKING_GROUP", "PROTOTYPE_GROUP"]

Checking = Check[Settings]
Demand = Callable[[Node, Checking], None]


def inside(node: Node | None, *keys: str) -> Node | None:
    """Return the node at a path of keys, or None if there is none."""
    for key in keys:
        node = node.get(key) if node is not None else None
    return node


def _word(node: Node) -> str | None:
    """Return the value of a node if it is a string."""
    return node.value if isinstance(node.value, str) else None


# Lists


def at_most(limit: int, way_out: str) -> Constraint:
    """Limit the number of entries of a list."""

    @constraint(maxItems=limit)
    def rule(node: Node, to: Checking) -> None:
        items = list(node)
        if len(items) > limit:
            message = f"there are {len(items)} entries, and at most {limit} are allowed"
            to.report(codes.TOO_MANY, message, items[limit], help=way_out)

    return rule


@constraint(list_type="set")
def no_duplicates(node: Node, to: Checking) -> None:
    """Reject a duplicate entry."""
    seen: set[object] = set()
    for item in node:
        if item.value in seen:
            to.report(codes.DUPLICATE, f"{quoted(str(item.value))} is written twice", item, help="remove one of them")
        seen.add(item.value)


@constraint(list_type="map", list_keys=["name"])
def unique_rule_names(rules: Node, to: Checking) -> None:
    """Reject two rules of one name."""
    for name in _repeated(rules):
        message = f"there are two rules named {quoted(name.text)}"
        to.report(codes.RULE_NAMES, message, name, help="AccessRule names must be unique: write another name")


@constraint(list_type="map", list_keys=["name"])
def unique_method_names(methods: Node, to: Checking) -> None:
    """Reject two MCP methods of one name: the list is a map by name."""
    for name in _repeated(methods):
        message = f"there are two entries for {quoted(name.text)}"
        to.report(codes.DUPLICATE, message, name, help="write all params into one of them")


def unique_header_names(headers: Node, to: Checking) -> None:
    """Reject two matches for one header.

    Gateway API takes the first match and this API all matches, so neither is safe.
    """
    for name in _repeated(headers, fold=True):
        message = f"there are two matches for the header {quoted(name.text)}"
        to.report(codes.DUPLICATE, message, name, help="write one match; a RegularExpression can combine several")


def _repeated(entries: Node, *, fold: bool = False) -> list[Node]:
    """Return the names that occur in an earlier entry."""
    names = [name for entry in entries if (name := entry.get("name")) is not None and _word(name)]
    words = [name.text.lower() if fold else name.text for name in names]
    return [name for position, name in enumerate(names) if words[position] in words[:position]]


# Targets


NO_TARGET_HELP = "write targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: ..}]"
some_target = not_empty(codes.NO_TARGET, "a policy needs a target", NO_TARGET_HELP)
"""Reject an empty list, which targets nothing."""


@constraint(
    Cel(
        "self.all(ref, (ref.kind == 'Gateway') == (self[0].kind == 'Gateway'))",
        "All targetRefs must have the same Kind",
    )
)
def one_kind(refs: Node, to: Checking) -> None:
    """Require that all targets are Gateways, or all are Backends."""
    kinds = [kind for ref in refs if (kind := ref.get("kind")) is not None and _word(kind) in _TARGETS]
    for kind in kinds[1:]:
        if (kind.text == "Gateway") != (kinds[0].text == "Gateway"):
            message = f"All targetRefs must have the same Kind, not {kinds[0].text} and {kind.text}"
            to.report(codes.MIXED_TARGETS, message, kind, help="write a policy for each kind")
            return


def target_of_v0alpha0(group: str) -> Constraint:
    """Check a target of the proposal's form, which lists the kinds in each of its groups."""
    message = f"TargetRef must have group {group} and kind XBackend, or group {GATEWAY_GROUP} and kind Gateway"
    backends = f"self.kind in {list(BACKEND_KINDS)} && self.group in {[PROTOTYPE_GROUP, NETWORKING_GROUP]}"
    gateway = f"self.kind == 'Gateway' && self.group == '{GATEWAY_GROUP}'"
    return constraint(Cel(f"({gateway}) || ({backends})", message))(_target(group, message))


def target_of_v1alpha1(ref: Node, to: Checking) -> None:
    """Check a target of today's form, which leaves other kinds than Gateway to the implementation.

    Eastgate supports Backends.
    """
    message = f"a policy on {quoted(ref['kind'].text)} of the group {quoted(ref['group'].text)} would not be enforced"
    _target(NETWORKING_GROUP, message)(ref, to)


def _target(backends: str, message: str) -> Demand:
    """Require a Gateway or a Backend. `backends` is the group to suggest for a Backend in another group."""

    def rule(ref: Node, to: Checking) -> None:
        kind, group = ref["kind"], ref["group"]
        if kind.text not in _TARGETS:
            to.report(codes.TARGET_KIND, message, kind, help=_instead(kind.text))
        elif group.text not in _TARGETS[kind.text]:
            home = GATEWAY_GROUP if kind.text == "Gateway" else backends
            to.report(codes.TARGET_KIND, message, group, help=f"write group: {home}")

    return rule


_TARGETS = {
    "Gateway": (GATEWAY_GROUP,),
    **dict.fromkeys(BACKEND_KINDS, (PROTOTYPE_GROUP, NETWORKING_GROUP)),
}


def _instead(kind: str) -> str:
    near = did_you_mean(kind, _TARGETS)
    if near is not None:
        return f"write kind: {near}"
    if kind.endswith("Route"):
        return "target the Gateway that the route is attached to, or the XBackend that it leads to"
    if kind in ("Service", "Pod", "Deployment"):
        return "target the XBackend of the Service, or the Gateway before it"
    return "write kind: Gateway, or kind: XBackend"


# Rules


@constraint(minItems=1)
def some_rule(rules: Node, to: Checking) -> None:
    """Require, in the proposal's form, at least one rule."""
    if not list(rules):
        to.report(codes.NO_RULES, "a policy needs a rule", rules, help=NO_RULES_HELP)


NO_RULES_HELP = "write rules: [{name: .., source: {..}, authorization: {..}}]"


@constraint(*TYPE_FITS_MEMBERS)
def source(node: Node, to: Checking) -> None:
    """Require the member of a source that its type names, and no other member."""
    kind = node["type"]
    wanted, other = members_of(node)
    example = "spiffe://<trust domain>/<path>" if kind.text == "SPIFFE" else "{name: ..}"
    if other in node:
        message = f"`{other}` does not belong in a source of type {kind.text}"
        way_out = "write a rule for each source" if wanted in node else f"write {wanted}: {example}, or change the type"
        to.report(codes.FOREIGN_MEMBER, message, node.key_span(other), help=way_out)
    elif wanted not in node:
        message = f"a source of type {kind.text} needs `{wanted}`"
        to.report(codes.SOURCE_MEMBER, message, kind, help=f"write {wanted}: {example}")


_MEMBERS = {"InlineTools": "tools", "ExternalAuth": "externalAuth", "CEL": "cel"}
_MISSING = {
    "tools": (codes.TOOLS_MISSING, "write tools: [..]; an empty list names no tool"),
    "externalAuth": (codes.EXTERNAL_AUTH_MISSING, "write externalAuth: {protocol: .., backendRef: {..}}"),
    "cel": (codes.CEL_MISSING, "write cel: {expression: ..}"),
}


def authorization(types: tuple[str, ...]) -> Constraint:
    """Require, in the proposal's form, the member that the type names, and no other. `types` are the supported ones."""
    return constraint(
        *(
            Cel(
                f"(self.type == '{name}') == has(self.{_MEMBERS[name]})",
                f"`{_MEMBERS[name]}` must be set if and only if the type is {name}",
            )
            for name in types
        )
    )(_authorization)


def _authorization(node: Node, to: Checking) -> None:
    kind = node["type"]
    wanted = _MEMBERS[kind.text]
    others = [member for member in _MEMBERS.values() if member != wanted and member in node]
    for other in others:
        message = f"`{other}` does not belong in an authorization of type {kind.text}"
        meant = next(name for name, member in _MEMBERS.items() if member == other)
        way_out = "write one of them" if wanted in node else f"write type: {meant}, or `{wanted}` instead"
        to.report(codes.FOREIGN_MEMBER, message, node.key_span(other), help=way_out)
    if wanted not in node and not others:
        code, way_out = _MISSING[wanted]
        to.report(code, f"{wanted} must be specified when type is set to '{kind.text}'", kind, help=way_out)


_ASKS = "has(rule.authorization) && rule.authorization.type == 'ExternalAuth'"


@constraint(
    Cel(
        f"!has(self.action) || self.action != 'Deny' || !self.rules.exists(rule, {_ASKS})",
        "a Deny policy cannot ask an external authorizer",
    ),
    Cel(
        f"!self.rules.exists(rule, {_ASKS}) || self.rules.all(rule, {_ASKS})",
        "ExternalAuth and rules that allow by themselves cannot be in one policy",
    ),
    Cel(
        f"self.rules.filter(rule, {_ASKS}).size() <= 1",
        "a maximum of one rule per policy can specify 'ExternalAuth' authorization type",
    ),
)
def one_way_to_authorize(spec: Node, to: Checking) -> None:
    """Require, in the proposal's form, that a policy either asks one authorizer or lists tools.

    A policy that denies must not ask.
    """
    ways = [way for rule in spec["rules"] if (way := _way(rule)) is not None]
    asking = [node for way, node in ways if way == "ExternalAuth"]
    others = [(way, node) for way, node in ways if way != "ExternalAuth"]
    action = spec.get("action")
    if action is not None and action.value == "Deny":
        for node in asking:
            message = "a Deny policy cannot ask an external authorizer"
            to.report(codes.DENY_ASKS, message, node, help="write type: InlineTools, or remove the action")
    elif asking and others:
        _mixed(asking[0], *others[0], to)
    elif len(asking) > 1:
        message = "a maximum of one rule per policy can specify 'ExternalAuth' authorization type"
        to.report(codes.ONE_EXTERNAL_AUTH, message, asking[1], help="write a policy for each authorizer")


def _way(rule: Node) -> tuple[str, Node] | None:
    """Return the type of authorization of a rule, and its node; None if it is invalid and reported already."""
    kind = inside(rule, "authorization", "type")
    if kind is not None and _word(kind) in _MEMBERS:
        return kind.text, kind
    if {key for key, _ in rule.items()} == {"name", "source"}:
        return "without authorization", rule["name"]
    return None


def _mixed(asking: Node, way: str, other: Node, to: Checking) -> None:
    """Report two types of authorization in one policy, at the later of the two."""
    first, later = sorted((asking, other), key=lambda node: (node.line, node.column))
    words = f"{way} and ExternalAuth" if way in _MEMBERS else "ExternalAuth and a rule without `authorization`"
    message = f"{words} cannot be in one policy (see line {first.line})"
    to.report(codes.MIXED_AUTHORIZATION, message, later, help="write a policy for each")


# Today's form


def action_and_external_auth(spec: Node, to: Checking) -> None:
    """Require, in v1alpha1, the field externalAuth with the action ExternalAuth, and no other action with it."""
    action = spec["action"]
    if action.text == "ExternalAuth" and "externalAuth" not in spec:
        message = "externalAuth must be specified when action is set to 'ExternalAuth'"
        way_out = "write externalAuth: {protocol: .., backendRef: {name: .., port: ..}}"
        to.report(codes.EXTERNAL_AUTH_MISSING, message, action, help=way_out)
    if action.text != "ExternalAuth" and "externalAuth" in spec:
        message = f"`externalAuth` does not belong in a policy whose action is {action.text}"
        way_out = "write action: ExternalAuth, or remove it"
        to.report(codes.FOREIGN_MEMBER, message, spec.key_span("externalAuth"), help=way_out)


def some_effect(spec: Node, to: Checking) -> None:
    """Reject, in v1alpha1, an empty list of rules, except in an Allow policy. It matches no request."""
    action, rules = spec["action"], spec.get("rules")
    if rules is not None and not list(rules) and action.text in _EFFECTS:
        message = f"a policy with an empty list of rules {_EFFECTS[action.text]} nothing"
        to.report(codes.NO_EFFECT, message, rules, help="leave `rules` out to mean every request, or write a rule")


_EFFECTS = {"Deny": "denies", "ExternalAuth": "asks about"}


# Backend


@constraint(
    Cel(
        "has(self.serviceName) != has(self.hostname)",
        "exactly one of the fields in [serviceName hostname] must be set",
    )
)
def one_destination(mcp: Node, to: Checking) -> None:
    """Require that a Backend is either a Service or a host."""
    if ("serviceName" in mcp) == ("hostname" in mcp):
        both = "hostname" in mcp
        message = "exactly one of the fields in [serviceName hostname] must be set"
        way_out = "remove one of them" if both else "write serviceName: .., or hostname: .."
        to.report(codes.EXACTLY_ONE, message, mcp.key_span("hostname") if both else mcp, help=way_out)
