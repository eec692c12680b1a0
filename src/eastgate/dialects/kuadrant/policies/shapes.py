"""AuthPolicy, field by field."""

from __future__ import annotations

from eastgate.cluster.resources import dns_subdomain, resource
from eastgate.dialects.kuadrant.policies import validation
from eastgate.dialects.kuadrant.policies.model import Strategy
from eastgate.dialects.kuadrant.schemes import NAMED_PATTERNS_ALL_OF, RULES, WHEN_PREDICATES
from eastgate.reading.manifests.shapes import Choice, Field, Record, Text
from eastgate.reading.manifests.shapes.codes import UNKNOWN_FIELD
from eastgate.settings import Settings

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
    rules=(validation.target,),
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
            rules=(validation.some_rule,),
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
        rules=(validation.one_block, validation.some_rule),
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
