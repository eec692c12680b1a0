"""AccessPolicy in the proposal's form and in today's, and Backend, field by field."""

from __future__ import annotations

from eastgate.basics.diagnostics import Code
from eastgate.cluster.resources import dns_label, dns_subdomain, resource
from eastgate.dialects.accesspolicy import attributes, codes, validation, values
from eastgate.dialects.accesspolicy.cel import CEL
from eastgate.dialects.accesspolicy.shapes_inline import AUTHORIZATION, EXTERNAL_AUTH, INLINE_FIELDS, PORT
from eastgate.dialects.accesspolicy.validation import (
    NETWORKING_GROUP,
    PROTOTYPE_GROUP,
    Demand,
    at_most,
)
from eastgate.dialects.sources import source_fields
from eastgate.reading.manifests.shapes import Choice, Field, ListOf, Record, Text, all_of, enumerated
from eastgate.reading.manifests.shapes import codes as schema_codes
from eastgate.settings import Settings

_AT_MOST_TEN = at_most(10, "write the rest into another policy")


# Targets


def _targets(target: Demand) -> Field[Settings]:
    ref: Record[Settings] = Record(
        "a target reference",
        {
            "group": Field(
                Text("a group", served=253),
                required=True,
                help="write group: gateway.networking.k8s.io",
                about="The group of the target: gateway.networking.k8s.io, or the group of the XBackend.",
            ),
            "kind": Field(
                Text("a kind", served=63),
                required=True,
                help="write kind: Gateway, or kind: XBackend",
                about="Gateway, or XBackend.",
            ),
            "name": Field(
                dns_subdomain("a name"),
                required=True,
                help="write name: ..",
                about="The name of the target, in the policy's own namespace.",
            ),
        },
        rules=(target,),
        foreign={
            "sectionName": (codes.SECTION_NAME, "remove it: a policy applies to the whole target"),
            "namespace": (codes.TARGET_KIND, "remove it: a policy only ever targets objects of its own namespace"),
        },
    )
    rules = all_of(_AT_MOST_TEN, validation.some_target, validation.one_kind)
    return Field(
        ListOf(ref, "a list of target references", rules),
        required=True,
        missing=codes.NO_TARGET,
        help=validation.NO_TARGET_HELP,
        about="The Gateways or the Backends that the policy applies to, all of one kind.",
    )


_TARGET_MISSPELT = {"targetRef": "targetRefs", "target": "targetRefs", "selector": "targetRefs"}
_TARGET_ADVICE = dict.fromkeys(_TARGET_MISSPELT, validation.NO_TARGET_HELP)


# Sources

_account: Record[Settings] = Record(
    "serviceAccount",
    {
        "name": Field(
            Text("a service account", values.account_name),
            required=True,
            help="write name: ..",
            about="The name of the account; there is no * here.",
        ),
        "namespace": Field(
            dns_label("a namespace"), about="The namespace of the account. The default is the policy's own namespace."
        ),
    },
    otherwise="write serviceAccount: {name: .., namespace: ..}",
)
_source: Record[Settings] = Record(
    "a source",
    source_fields(values.spiffe_id, _account),
    rules=(validation.source,),
    misspelt={"serviceAccounts": "serviceAccount", "identity": "spiffe", "identities": "spiffe", "spiffeID": "spiffe"},
)
_rule_name: Field[Settings] = Field(
    Text("the name of a rule", values.rule_name),
    required=True,
    help="write name: <a name for the rule>",
    about="The name of the rule, unique in the policy.",
)
_RULE_MISSPELT = {"sources": "source", "from": "source"}


# The proposal's form, v0alpha0

_TOOLS = "{type: InlineTools, tools: [..]}"


def _v0alpha0(group: str, *types: str) -> Record[Settings]:
    rule: Record[Settings] = Record(
        "a rule",
        {
            "name": _rule_name,
            "source": Field(
                _source,
                required=True,
                help="write source: {type: ServiceAccount, serviceAccount: {name: ..}}",
                about="The caller.",
            ),
            "authorization": Field(
                _old_authorization(types),
                help=f"write authorization: {_TOOLS}; a rule without it allows no tool, and denies everything",
                about="The calls that the rule allows (or, with the action Deny, denies) its source. A rule without it "
                "allows no tool, and denies everything.",
            ),
        },
        misspelt={**_RULE_MISSPELT, "tools": "authorization", "externalAuth": "authorization"},
        advice={
            "tools": f"write authorization: {_TOOLS}",
            "externalAuth": "write authorization: {type: ExternalAuth, externalAuth: {..}}",
        },
    )
    rules = all_of(_AT_MOST_TEN, validation.some_rule, validation.unique_rule_names)
    return resource(
        "AccessPolicy",
        Record(
            "spec",
            {
                "targetRefs": _targets(validation.target_of_v0alpha0(group)),
                "action": Field(_OLD_ACTION, about="Allow, which is the default, or Deny."),
                "rules": Field(
                    ListOf(rule, "a list of rules", rules),
                    required=True,
                    missing=codes.NO_RULES,
                    help=validation.NO_RULES_HELP,
                    about="The tools that each caller may call. Calls that no rule allows are denied.",
                ),
            },
            rules=(validation.one_way_to_authorize, attributes.fit_the_target),
            misspelt=_TARGET_MISSPELT,
            advice={**_TARGET_ADVICE, "externalAuth": f"in v0alpha0 {_RULES_ASK}"},
        ),
        about="The MCP tools that agents may call at a Gateway or a Backend.",
    )


_RULES_ASK = "a rule asks: write authorization: {type: ExternalAuth, externalAuth: {..}} in it"
_OLD_ACTION = Choice(
    ("Allow", "Deny"),
    reasons={"EXTERNALAUTH": (schema_codes.NOT_A_CHOICE, f"remove the action; in v0alpha0 {_RULES_ASK}")},
)
_CEL_HELP = f"CEL came with {NETWORKING_GROUP}: write that group in apiVersion"


def _old_authorization(types: tuple[str, ...]) -> Record[Settings]:
    reasons: dict[str, tuple[Code, str]] = {
        "INLINE": (schema_codes.NOT_A_CHOICE, "Inline is v1alpha1: write type: InlineTools and tools: [..]")
    }
    fields: dict[str, Field[Settings]] = {
        "type": Field(
            Choice(types, reasons=reasons),
            required=True,
            help=f"write type: {enumerated(types, 'or')}",
            about="The member that defines the allowed calls.",
        ),
        "tools": Field(
            ListOf(
                Text("a tool", attributes.tool, served=attributes.MAX_SERVED_NAME_LENGTH),
                "a list of tools",
                validation.no_duplicates,
                served=256,
            ),
            help="write tools: [..]; an empty list names no tool",
            about="Names of tools, compared exactly; [] names none. On a Gateway backend/tool names one backend's.",
        ),
        "externalAuth": Field(EXTERNAL_AUTH, about="An authorizer that decides in place of the rule."),
    }
    if "CEL" in types:
        fields["cel"] = Field(CEL, about="A condition on the request.")
    else:
        reasons["CEL"] = (schema_codes.NOT_A_CHOICE, _CEL_HELP)
    return Record(
        "authorization",
        fields,
        rules=(validation.authorization(types),),
        misspelt={"mcp": "tools", "cel": "tools"},
        advice={"mcp": "`mcp` is v1alpha1: write type: InlineTools and tools: [..]", "cel": _CEL_HELP},
    )


V0ALPHA0 = _v0alpha0(PROTOTYPE_GROUP, "InlineTools", "ExternalAuth")
V0ALPHA0_CEL = _v0alpha0(NETWORKING_GROUP, "InlineTools", "ExternalAuth", "CEL")


# Today's form, v1alpha1

_IN_AUTHORIZATION = (*INLINE_FIELDS, "cel")
_rule: Record[Settings] = Record(
    "a rule",
    {
        "name": _rule_name,
        "source": Field(
            _source,
            help="write source: {type: .., ..}; without it any caller matches",
            about="The caller. Without it any caller matches.",
        ),
        "authorization": Field(
            AUTHORIZATION,
            help="write authorization: {type: .., ..}; without it every request matches",
            about="The requests of the rule. Without it every request matches.",
        ),
    },
    misspelt={**_RULE_MISSPELT, **dict.fromkeys(("tools", *_IN_AUTHORIZATION), "authorization")},
    advice={
        "tools": "write authorization: {type: Inline, mcp: {methods: [{name: tools/call, params: [..]}]}}",
        **{name: f"indent it: `{name}` belongs in `authorization`" for name in _IN_AUTHORIZATION},
    },
)

V1ALPHA1: Record[Settings] = resource(
    "AccessPolicy",
    Record(
        "spec",
        {
            "targetRefs": _targets(validation.target_of_v1alpha1),
            "action": Field(
                Choice(("Allow", "Deny", "ExternalAuth")),
                required=True,
                help="write action: Allow, action: Deny or action: ExternalAuth",
                about="The effect on a request that one of the rules matches.",
            ),
            "externalAuth": Field(EXTERNAL_AUTH, about="The authorizer that the action ExternalAuth asks."),
            "rules": Field(
                ListOf(_rule, "a list of rules", all_of(_AT_MOST_TEN, validation.unique_rule_names)),
                help="write rules: [{name: .., ..}]; without rules every request matches, with [] none",
                about="The requests of the policy. Without rules every request matches; [] matches none.",
            ),
        },
        rules=(validation.action_and_external_auth, validation.some_effect, attributes.fit_the_target),
        misspelt=_TARGET_MISSPELT,
        advice=_TARGET_ADVICE,
    ),
    about="The tools that agents may call at a Gateway or a Backend.",
)


# Backend

_mcp: Record[Settings] = Record(
    "mcp",
    {
        "serviceName": Field(dns_label("the name of a Service"), about="A Service of the Backend's own namespace."),
        "hostname": Field(Text("a host name", values.hostname), about="A host, inside or outside of the cluster."),
        "port": Field(PORT, required=True, help="write port: ..", about="The port of the Service or of the host."),
        "path": Field(Text("a path", values.backend_path), about="The path of its MCP endpoint. The default is /mcp."),
    },
    rules=(validation.one_destination,),
    misspelt={"service": "serviceName", "name": "serviceName", "host": "hostname"},
)

BACKEND: Record[Settings] = resource(
    "Backend",
    Record(
        "spec",
        {
            "mcp": Field(
                _mcp,
                required=True,
                help="write mcp: {serviceName: .., port: ..}",
                about="An MCP server: a Service or a host, one of the two.",
            )
        },
        misspelt=dict.fromkeys(("serviceName", "hostname", "port"), "mcp"),
        advice={name: f"indent it: `{name}` belongs in `mcp`" for name in ("serviceName", "hostname", "port", "path")},
    ),
    about="An MCP server that routes forward to and policies target.",
)
