"""Checks of the drafts' requirements beyond the types of fields. Each function is one check.

`shapes.py` attaches the checks to the shapes. A check runs only if the fields that it reads have the right type.
"""

from __future__ import annotations

from eastgate.basics.diagnostics import did_you_mean
from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster.resources import dns_label_name
from eastgate.dialects.gep3779 import codes
from eastgate.dialects.sources import TYPE_FITS_MEMBERS, members_of
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Cel, Check, Constraint, constraint, not_empty, quoted
from eastgate.reading.manifests.shapes.shape import DNS_LABEL, any_case, whole
from eastgate.settings import MeshMode, Settings

Checking = Check[Settings]

_ROUTES = ("HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute")


# Targets


@constraint(
    Cel("self.kind in ['Pod', 'Service']", "a policy targets Pods by label selector, or a Service by name"),
    Cel("!has(self.group) || self.group in ['', 'core']", 'Pods and Services are in the core group: write group: ""'),
    Cel("!has(self.selector) || self.kind == 'Pod'", "Selector may only be set when targeting Pods."),
    Cel(
        "self.kind != 'Pod' || has(self.selector)", "a Pod target needs `selector`; `{}` is every pod of the namespace"
    ),
    Cel("self.kind != 'Pod' || !has(self.name)", "a Pod target cannot have a `name`"),
    Cel(
        f"self.kind != 'Service' || (has(self.name) && self.name.matches(r'{whole(DNS_LABEL)}'))",
        "a Service target needs the `name` of a Service",
    ),
)
def target(ref: Node, to: Checking) -> None:
    """Check that a target is Pods with a label selector, or a Service with a name."""
    kind = ref["kind"]
    if kind.text in _ROUTES:
        to.report(
            codes.ROUTE_TARGET,
            f"`{kind.text}` cannot be the target of a policy",
            kind,
            help="“we don't have the route information that was responsible for the routing”: "
            "target Pods with a selector instead",
        )
    elif kind.text == "Namespace":
        to.report(
            codes.NAMESPACE_TARGET,
            "`Namespace` cannot be the target of a policy",
            kind,
            help="it “gives the (confusing) impression that Gateways .. are targeted as well”: "
            "write kind: Pod and selector: {} for every pod of the policy's namespace",
        )
    elif kind.text not in ("Pod", "Service"):
        near = did_you_mean(kind.text, ("Pod", "Service"))
        to.report(
            codes.TARGET_KIND,
            f"{quoted(kind.text)} cannot be the target of a policy",
            kind,
            help=f"did you mean `{near}`?" if near else "write kind: Pod and a selector, or kind: Service and its name",
        )
    else:
        _core_group(ref, to)
        (_pod_target if kind.text == "Pod" else _service_target)(ref, to)


def _core_group(ref: Node, to: Checking) -> None:
    group = ref.get("group")
    if group is not None and group.text not in ("", "core"):
        to.report(
            codes.TARGET_GROUP, f"{ref['kind'].text} is not in the group `{group.text}`", group, help='write group: ""'
        )


SELECTOR_HELP = "write selector: {matchLabels: {..}}, or selector: {} for every pod of the policy's namespace"


def _pod_target(ref: Node, to: Checking) -> None:
    if "name" in ref:
        to.report(
            codes.POD_HAS_NAME,
            "a Pod target cannot have a `name`",
            ref.key_span("name"),
            help="remove it" if "selector" in ref else "select the pod by its labels: selector: {matchLabels: {..}}",
        )
    elif "selector" not in ref:
        to.report(
            codes.POD_NEEDS_SELECTOR,
            "a Pod target needs `selector`",
            ref,
            help=SELECTOR_HELP,
        )


def _service_target(ref: Node, to: Checking) -> None:
    name = ref.get("name")
    if "selector" in ref:
        to.report(
            codes.SELECTOR_NOT_ON_POD,
            "Selector may only be set when targeting Pods.",
            ref.key_span("selector"),
            help="remove it, or write kind: Pod" if name is not None else "name the Service, or write kind: Pod",
        )
    elif name is None:
        to.report(
            codes.SERVICE_NEEDS_NAME, "a Service target needs `name`", ref, help="write name: <the Service's name>"
        )
    if name is not None:
        dns_label_name(name, to)


NO_TARGET_HELP = "for every pod of the policy's namespace write targetRefs: [{kind: Pod, selector: {}}]"
some_target = not_empty(codes.NO_TARGET, "a policy needs a target", NO_TARGET_HELP)
"""Reject an empty list of targets: it is not a namespace-wide policy."""


@constraint(
    Cel(
        "size(self) <= 1 || self.all(ref, ref.kind != 'Pod')",
        "a policy that targets Pods has exactly one targetRef",
    ),
    minItems=1,
)
def pod_stands_alone(refs: Node, to: Checking) -> None:
    """Reject other targets beside Pods in the X kind."""
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
    """Return the level in lower case; `network` if none is written."""
    level = spec.get("enforcementLevel")
    return level.value.casefold() if level is not None and isinstance(level.value, str) else "network"


_APPLICATION = whole(any_case("application"))
_IS_APPLICATION = f"(has(self.enforcementLevel) && self.enforcementLevel.matches('{_APPLICATION}'))"


@constraint(
    Cel(
        f"{_IS_APPLICATION} || !has(self.rules) || self.rules.all(rule, !has(rule.applicationAttributes))",
        "a NETWORK policy cannot have `applicationAttributes`",
    )
)
def no_application_attributes_at_network(spec: Node, to: Checking) -> None:
    """Reject L7 attributes in a NETWORK policy. Ignoring them would make the policy wider than written."""
    if level_of(spec) == "application":
        return
    for rule in spec.get("rules") or ():
        if "applicationAttributes" in rule:
            to.report(
                codes.APPLICATION_ATTRIBUTES_AT_NETWORK,
                "a NETWORK policy cannot have `applicationAttributes`",
                rule.key_span("applicationAttributes"),
                help="write enforcementLevel: APPLICATION, or remove the attributes",
            )


@constraint(
    Cel(
        f"!has(self.enforcementLevel) || {_IS_APPLICATION} || self.targetRefs.all(ref, ref.kind != 'Service')",
        "a NETWORK policy must use a label selector, not a Service",
        mesh=(MeshMode.SIDECAR, MeshMode.AMBIENT),
    ),
    Cel(
        f"!{_IS_APPLICATION} || self.targetRefs.all(ref, ref.kind != 'Service')",
        "in a sidecar mesh an APPLICATION policy cannot target a Service",
        mesh=(MeshMode.SIDECAR,),
    ),
    Cel(
        f"!{_IS_APPLICATION} || self.targetRefs.all(ref, ref.kind != 'Pod')",
        "in an ambient mesh an APPLICATION policy cannot use a label selector",
        mesh=(MeshMode.AMBIENT,),
    ),
)
def target_fits_level(spec: Node, to: Checking) -> None:
    """Check the draft's “VAP Validation” list if the level is written."""
    if "enforcementLevel" not in spec:
        return
    application = level_of(spec) == "application"
    ambient = to.context.mesh_mode is MeshMode.AMBIENT
    for ref in spec.get("targetRefs") or ():
        kind = ref.get("kind")
        if kind is None or (kind.value == "Service" and "selector" in ref):  # the invalid level is reported already
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


def deny_has_rules(rules_field: str) -> Constraint:
    """Reject a DENY policy without rules, because it denies nothing."""

    @constraint(
        Cel(
            f"self.action != 'DENY' || (has(self.{rules_field}) && size(self.{rules_field}) > 0)",
            f"a DENY policy without rules denies nothing: to deny everything write {rules_field}: [{{}}]",
        )
    )
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


_LISTS = ("identities", "serviceAccounts", "namespaces")


@constraint(
    Cel(
        "has(self.identities) ? !has(self.serviceAccounts) && !has(self.namespaces)"
        " : has(self.serviceAccounts) != has(self.namespaces)",
        "Exactly one of identities, serviceAccounts, or namespaces must be specified.",
    ),
    Cel(
        " && ".join(f"(!has(self.{name}) || size(self.{name}) > 0)" for name in _LISTS),
        "the list that names the source must not be empty",
    ),
)
def one_list(source: Node, to: Checking) -> None:
    """Require, in v1alpha1, exactly one of the three lists, and an entry in it."""
    lists = [name for name in _LISTS if name in source]
    if len(lists) == 1 and list(source[lists[0]]):
        return
    at: Node | Span = source
    if len(lists) > 1:
        at, way_out = source.key_span(lists[1]), "write one source for each list"
    elif lists:
        at, way_out = source[lists[0]], f"write at least one entry in `{lists[0]}`, or remove the source"
    else:
        way_out = "write the one list that names the source"
    to.report(
        codes.ONE_SOURCE_LIST,
        "Exactly one of identities, serviceAccounts, or namespaces must be specified.",
        at,
        help=way_out,
    )


def matching_list(field: str) -> Constraint:
    """Reject, in v1alpha1, an empty list, because it means the opposite in the next version."""
    way_out = f"leave `{field}` out to match everything, or remove the rule to match nothing"
    return not_empty(codes.EMPTY_LIST_V1ALPHA1, f"`{field}` is empty", way_out)


@constraint(*TYPE_FITS_MEMBERS)
def source_union(source: Node, to: Checking) -> None:
    """Require, in the X kind, the member of a source that its type names, and no other member."""
    wanted, other = members_of(source)
    kind = source["type"].text
    if other in source:
        to.report(
            codes.SOURCE_MEMBER_FOREIGN,
            f"`{other}` does not belong in a source of type {kind}",
            source.key_span(other),
            help="write one source for each" if wanted in source else f"write `{wanted}`, or change the type",
        )
    elif wanted not in source:
        to.report(
            codes.SOURCE_MEMBER_MISSING,
            f"a source of type {kind} needs `{wanted}`",
            source,
            help=f"write `{wanted}`, or change the type",
        )
