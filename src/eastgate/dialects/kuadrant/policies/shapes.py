"""AuthPolicy, field by field."""

from __future__ import annotations

from eastgate.basics.diagnostics import did_you_mean
from eastgate.cluster import GATEWAY_GROUP
from eastgate.cluster.resources import dns_subdomain, resource
from eastgate.dialects.kuadrant.policies import codes
from eastgate.dialects.kuadrant.policies.model import Strategy
from eastgate.dialects.kuadrant.schemes import NAMED_PATTERNS_ALL_OF, RULES, WHEN_PREDICATES
from eastgate.dialects.kuadrant.schemes.validation import Checking
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Cel, Choice, Field, Record, Text, constraint, quoted
from eastgate.reading.manifests.shapes.codes import UNKNOWN_FIELD
from eastgate.settings import Settings

# Checks of an AuthPolicy beyond the types of its fields, as in the CRD. Each function is one check.


KINDS = ("HTTPRoute", "GRPCRoute", "Gateway")
_PROPER = ("rules", "when", "patterns")


@constraint(
    Cel(f"self.group == '{GATEWAY_GROUP}'", f"the only supported group is {GATEWAY_GROUP}"),
    Cel(f"self.kind in {list(KINDS)}", "the only supported kinds are HTTPRoute, GRPCRoute and Gateway"),
)
def target(ref: Node, to: Checking) -> None:
    """Check the group and the kind of the target."""
    group, kind = ref["group"], ref["kind"]
    if group.text != GATEWAY_GROUP:
        message = f"invalid targetRef.group {quoted(group.text)}: the only supported group is {GATEWAY_GROUP}"
        to.report(codes.SECTION_TARGET_GROUP, message, group, help=f"write group: {GATEWAY_GROUP}")
    if kind.text not in KINDS:
        near = did_you_mean(kind.text, KINDS)
        way_out = f"did you mean `{near}`?" if near else "write kind: HTTPRoute, GRPCRoute or Gateway"
        message = f"invalid targetRef.kind {quoted(kind.text)}: it may be HTTPRoute, GRPCRoute or Gateway"
        to.report(codes.SECTION_TARGET_KIND, message, kind, help=way_out)


@constraint(
    Cel(
        "!(has(self.defaults) && (has(self.patterns) || has(self.when) || has(self.rules)))",
        "implicit and explicit defaults are mutually exclusive",
    ),
    Cel(
        "!(has(self.overrides) && (has(self.patterns) || has(self.when) || has(self.rules)))",
        "implicit defaults and explicit overrides are mutually exclusive",
    ),
    Cel(
        "!(has(self.overrides) && has(self.defaults))",
        "explicit overrides and explicit defaults are mutually exclusive",
    ),
)
def one_block(spec: Node, to: Checking) -> None:
    """Reject rules in two of three places: the spec itself, `defaults` and `overrides`."""
    explicit = [name for name in ("defaults", "overrides") if name in spec]
    if len(explicit) > 1:
        message = "a policy has one of `defaults` and `overrides`, not both"
        to.report(codes.DEFAULTS_AND_OVERRIDES, message, spec.key_span(explicit[1]), help="write two policies")
    for name in _PROPER:
        if explicit and name in spec:
            message = f"`{name}` is beside `{explicit[0]}`, and belongs in it"
            to.report(codes.IMPLICIT_AND_EXPLICIT, message, spec.key_span(name), help=f"write it into `{explicit[0]}`")


def some_rule(block: Node, to: Checking) -> None:
    """Require at least one rule, in the spec itself or in the block that has the rules."""
    if "defaults" in block or "overrides" in block:
        return
    rules = block.get("rules")
    if rules is not None and any(section not in RULES.fields for section, _ in rules.items()):
        return  # reported already: the block itself is wrong
    if rules is None or not _has_rule(rules):
        message = "at least one rule must be defined"
        way_out = "write rules: {authentication: {<name>: {..}}}, or another section with a rule in it"
        to.report(codes.NO_RULES, message, rules if rules is not None else block, help=way_out)


def _has_rule(rules: Node) -> bool:
    response = rules.get("response")
    success = response.get("success") if response is not None else None
    named = [rules.get(section) for section in ("authentication", "metadata", "authorization", "callbacks")]
    if success is not None:
        named += [success.get("headers"), success.get("filters")]
    if any(section is not None and section.value for section in named):
        return True
    return response is not None and ("unauthenticated" in response or "unauthorized" in response)


_TARGET_HELP = "write targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: ..}"
_target: Record[Settings] = Record(
    "a target reference",
    {
        "group": Field(
            Text("a group", served=253),
            required=True,
            help="write group: gateway.networking.k8s.io",
            about="The group of the target: gateway.networking.k8s.io.",
        ),
        "kind": Field(
            Text("HTTPRoute, GRPCRoute or Gateway", served=63),
            required=True,
            help="write kind: HTTPRoute, GRPCRoute or Gateway",
            about="HTTPRoute, GRPCRoute or Gateway.",
        ),
        "name": Field(
            dns_subdomain("a name"),
            required=True,
            help="write name: <the target's name>",
            about="The name of the target, which is in the namespace of the policy.",
        ),
        "sectionName": Field(
            dns_subdomain("the name of a section"),
            about="The listener of the Gateway, or the rule of the route, that the policy is about. Without it, all.",
        ),
    },
    rules=(target,),
    foreign={"namespace": (UNKNOWN_FIELD, "remove it: the target is in the namespace of the policy")},
)
_proper: dict[str, Field[Settings]] = {
    "when": WHEN_PREDICATES,
    "patterns": Field(NAMED_PATTERNS_ALL_OF, about="Sets of patterns by name, for `patternRef` in rules."),
    "rules": Field(RULES, about="How callers are recognized and authorized: rules by section and name."),
}


def _block(name: str) -> Field[Settings]:
    about = {
        "defaults": "Rules that more specific policies may replace.",
        "overrides": "Rules that replace those of more specific policies.",
    }
    strategy: Field[Settings] = Field(
        Choice(tuple(Strategy)),
        about="`atomic` (default): the rules count as a whole; `merge`: rule by rule.",
    )
    return Field(
        Record(
            name,
            {"strategy": strategy, **_proper},
            rules=(some_rule,),
            misspelt={"conditions": "when", "rule": "rules"},
        ),
        about=about[name],
    )


AUTH_POLICY: Record[Settings] = resource(
    "AuthPolicy",
    Record(
        "spec",
        {
            "targetRef": Field(
                _target,
                required=True,
                help=_TARGET_HELP,
                about="The Gateway or the route whose requests the policy is about.",
            ),
            **_proper,
            "defaults": _block("defaults"),
            "overrides": _block("overrides"),
        },
        rules=(one_block, some_rule),
        misspelt={"targetRefs": "targetRef", "rule": "rules", "default": "defaults", "override": "overrides"},
        advice={
            "routeSelectors": "remove it: write `when`, or a policy with sectionName for a rule of the route",
            "authScheme": "write its sections into `rules`",
            "authSchemes": "write the sections of the scheme into `rules`",
            **dict.fromkeys(RULES.fields, "indent it: write it in `rules`"),
        },
    ),
    about="Who may pass a Gateway or a route, by an auth scheme.",
)
