"""Converts AccessPolicy between the proposal's form and today's.

In the proposal's form (v0alpha0) a rule names a caller and its tools. The messages that every tool call needs (the base
protocol) are allowed by themselves. In today's form (v1alpha1) the base protocol is an option, and it contains more
methods. So neither form can express the other exactly.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.convert import codes
from eastgate.convert.model import Assumption, Item, Job, Manifest, metadata_of
from eastgate.dialects.accesspolicy import Policy
from eastgate.dialects.accesspolicy.model import Action
from eastgate.dialects.accesspolicy.settings import AccessSettings, UnlistedCaller
from eastgate.dialects.accesspolicy.validation import NETWORKING_GROUP, PROTOTYPE_GROUP
from eastgate.reading.manifests import Plain
from eastgate.reading.manifests.node import Node

# Converts the rules of an AccessPolicy to the other form, or returns the reason why no conversion is safe.


_MAX_PARAMS, _MAX_PARAM_LENGTH = 10, 20
_MATCH = "MATCH_BASE_PROTOCOL_METHODS"
_ASSUME = "if no MCP server has completion/*, logging/* and server/discover, add --assume mcp-base-protocol"


@dataclass(frozen=True, slots=True)
class NotExpressible:
    """The reason why the other form has no rule that is not wider."""

    message: str
    span: Span
    way_out: str | None = None


@dataclass(slots=True)
class Rules:
    """Rules in the other form. `needs_cel`: one of them is a CEL expression."""

    rules: list[Manifest] = field(default_factory=list)
    needs_cel: bool = False


# From v0alpha0 to v1alpha1


def new_rules(spec: Node, action: Action, job: Job) -> Rules | NotExpressible:
    """Convert rules to today's form. Every caller that a rule named is named in the result."""
    converted = Rules()
    at_gateway = any(ref["kind"].text == "Gateway" for ref in spec["targetRefs"])
    for rule in spec["rules"]:
        named_rule: Manifest = {"name": rule["name"].text, "source": rule["source"].plain()}
        if action is Action.ASK:
            converted.rules.append(named_rule)
        elif action is Action.DENY:
            conditions = _denied(rule, at_gateway)
            if isinstance(conditions, NotExpressible):
                return conditions
            converted.rules += _numbered(named_rule, conditions)
        else:
            converted.rules += _numbered(named_rule, _allowed(rule, at_gateway, job))
    return converted


def _numbered(named_rule: Manifest, conditions: Sequence[Manifest | None]) -> list[Manifest]:
    """Repeat the rule for each condition. The condition None means that the rule has no condition."""
    rules: list[Manifest] = []
    for number, condition in enumerate(conditions, 1):
        name = f"{named_rule['name']}"
        rule: Manifest = {**named_rule, "name": name if number == 1 else f"{name[:60]}-{number}"}
        rules.append(rule if condition is None else {**rule, "authorization": condition})
    return rules


def _denied(rule: Node, at_gateway: bool) -> list[Manifest | None] | NotExpressible:
    authorization = rule.get("authorization")
    if authorization is None:
        return [None]
    if authorization["type"].text == "CEL":
        return [authorization.plain()]  # type: ignore[list-item] # a mapping
    calls, problem = _calls(authorization["tools"], at_gateway)
    if problem is not None:
        return problem
    return [_inline([call]) if isinstance(call, dict) else _cel(call) for call in calls] or [_inline([])]


def _allowed(rule: Node, at_gateway: bool, job: Job) -> list[Manifest | None]:
    """Return the calls of the tools, and the base protocol in the widest form that allows no more than before."""
    authorization = rule.get("authorization")
    expressions: list[Manifest] = []
    methods: list[Manifest] = []
    if authorization is not None and authorization["type"].text == "CEL":
        plain = authorization.plain()
        assert isinstance(plain, dict)  # noqa: S101 - the schema has checked it
        expressions.append(plain)
    elif authorization is not None:
        calls, problem = _calls(authorization["tools"], at_gateway)
        methods = [call for call in calls if isinstance(call, dict)]
        expressions = [_cel(call) for call in calls if isinstance(call, str)]
        if problem is not None:
            job.lose(codes.RULE_LEFT_OUT, problem.message, problem.span)
    if job.assumes(Assumption.MCP_BASE_PROTOCOL):
        return [_inline(methods, base=True), *expressions]
    message = "initialize, ping, notifications and the session itself are no longer allowed with the tools"
    job.lose(codes.BASE_PROTOCOL, message, rule["name"].span, help=_ASSUME)
    return [_inline([*methods, {"name": "tools/list"}]), *expressions]


def _inline(methods: Sequence[Manifest], *, base: bool = False) -> Manifest:
    mcp: Manifest = {"methods": list[Plain](methods)}
    if base:
        mcp["mcpBaseProtocolMethodsOption"] = _MATCH
    return {"type": "Inline", "mcp": mcp}


def _cel(expression: str) -> Manifest:
    return {"type": "CEL", "cel": {"expression": expression}}


def _calls(tools: Node, at_gateway: bool) -> tuple[list[Manifest | str], NotExpressible | None]:
    """Convert calls of tools to `params`, or to an expression for too many tools or too long names."""
    names = list(tools)
    if len(names) <= _MAX_PARAMS and all(len(tool.text) <= _MAX_PARAM_LENGTH for tool in names):
        return [{"name": "tools/call", "params": [tool.text for tool in names]}], None
    qualified = [tool for tool in names if at_gateway and "/" in tool.text]
    plain = [tool.text for tool in names if tool not in qualified]
    calls: list[Manifest | str] = []
    short = [tool for tool in qualified if len(tool.text) <= _MAX_PARAM_LENGTH][:_MAX_PARAMS]
    if short:
        calls.append({"name": "tools/call", "params": [tool.text for tool in short]})
    if plain:
        listed = ", ".join(json.dumps(name, ensure_ascii=False) for name in plain)
        calls.append(f"request.mcp.tool_name in [{listed}]")
    left = next((tool for tool in qualified if tool not in short), None)
    if left is None:
        return calls, None
    return calls, NotExpressible(
        f"v1alpha1 cannot name `{left.text}`, of one backend and longer than 20 characters", left.span
    )


# From v1alpha1 to v0alpha0


def old_rules(spec: Node, action: Action, job: Job, *, may_leave_out: bool) -> Rules | NotExpressible:
    """Convert rules to the proposal's form.

    A rule that the form cannot express is left out of a policy that allows. A policy with another action is then not
    converted.
    """
    rules = spec.get("rules")
    if rules is None:
        return NotExpressible("v0alpha0 has no rule for all callers", spec["action"].span)
    converted = Rules()
    for rule in rules:
        new = _old_rule(rule, action, job)
        if isinstance(new, NotExpressible):
            if action is not Action.ALLOW or not may_leave_out:
                return new
            job.lose(codes.RULE_LEFT_OUT, f"{new.message}: the rule is left out", new.span, help=new.way_out)
            continue
        if action is Action.ASK:
            asks: Manifest = {"type": "ExternalAuth", "externalAuth": spec["externalAuth"].plain()}
            new["authorization"] = asks
        authorization = new.get("authorization")
        converted.needs_cel |= isinstance(authorization, dict) and authorization["type"] == "CEL"
        converted.rules.append(new)
    if not converted.rules:
        return NotExpressible("v0alpha0 has no policy that allows nothing", rules.span)
    return converted


def _old_rule(rule: Node, action: Action, job: Job) -> Manifest | NotExpressible:
    source, authorization = rule.get("source"), rule.get("authorization")
    if source is None:
        return NotExpressible("v0alpha0 has no rule for all callers", rule["name"].span)
    named_rule: Manifest = {"name": rule["name"].text, "source": source.plain()}
    if authorization is None or _matches_anything(authorization):
        if action is Action.ALLOW:
            return NotExpressible("v0alpha0 allows tools by their names, and not everything", rule["name"].span)
        return named_rule
    if action is Action.ASK:
        return NotExpressible("in v0alpha0 an authorizer is asked about every request of a source", authorization.span)
    condition = _old_condition(authorization, action, job)
    return condition if isinstance(condition, NotExpressible) else {**named_rule, "authorization": condition}


def _matches_anything(authorization: Node) -> bool:
    """Return whether an authorization matches every request.

    `mcp` without methods and base protocol counts as absent.
    """
    if authorization["type"].text != "Inline" or any(key not in ("type", "mcp") for key, _ in authorization.items()):
        return False
    mcp = authorization.get("mcp")
    return mcp is None or ("methods" not in mcp and not _with_base(mcp))


def _with_base(mcp: Node) -> bool:
    option = mcp.get("mcpBaseProtocolMethodsOption")
    return option is not None and option.text == _MATCH


def _old_condition(authorization: Node, action: Action, job: Job) -> Manifest | NotExpressible:
    if authorization["type"].text == "CEL":
        if action is Action.DENY:
            return authorization.plain()  # type: ignore[return-value] # a mapping
        return NotExpressible("in v0alpha0 this would also allow to initialize and to list tools", authorization.span)
    other = next((key for key, _ in authorization.items() if key not in ("type", "mcp")), None)
    mcp = authorization.get("mcp")
    if other is not None or mcp is None:
        span = authorization.key_span(other) if other is not None else authorization.span
        return NotExpressible(f"v0alpha0 knows tools and no {other or 'other requests'}", span)
    with_base, methods = _with_base(mcp), mcp.get("methods") or ()
    tools, exact = _tools(methods)
    if action is Action.DENY:
        if with_base or not exact:
            return NotExpressible("v0alpha0 denies tools by their names, and no other methods", mcp.span)
        return {"type": "InlineTools", "tools": tools}
    if not with_base:
        return NotExpressible("in v0alpha0 this would also allow to initialize and to list tools", mcp.span)
    if not job.assumes(Assumption.MCP_BASE_PROTOCOL):
        return NotExpressible("in v0alpha0 this would also allow server/discover", mcp.span, _ASSUME)
    if not exact:
        message = "of the MCP methods only tools/call with a tool name is kept"
        job.lose(codes.RULE_LEFT_OUT, message, mcp["methods"].span)
    return {"type": "InlineTools", "tools": tools}


def _tools(methods: Iterable[Node]) -> tuple[list[Plain], bool]:
    """Return the tools that the methods name, and whether the methods allow nothing else."""
    tools: list[Plain] = []
    exact = True
    for method in methods:
        if method["name"].text == "tools/call" and "params" in method:
            tools += [param.text for param in method["params"]]
        else:
            exact = False
    return tools, exact


_MAX_RULES = 10
_ACTIONS = {Action.ALLOW: "Allow", Action.DENY: "Deny", Action.ASK: "ExternalAuth"}


def to_v1alpha1(items: Sequence[Item], job: Job) -> None:
    """Convert from the proposal's form."""
    for item in items:
        policy, spec = _parts(item)
        converted = new_rules(spec, policy.action, job)
        if isinstance(converted, NotExpressible):
            _keep(item, converted, job)
            continue
        _lose_grant(item, spec, NETWORKING_GROUP, job)
        asks = next((_ask(rule) for rule in spec["rules"] if _ask(rule) is not None), None)
        for rules, name in _chunks(converted, item.document.name):
            new: Manifest = {"targetRefs": spec["targetRefs"].plain(), "action": _ACTIONS[policy.action]}
            if asks is not None:
                new["externalAuth"] = asks.plain()
            new["rules"] = rules
            _write(item, f"{NETWORKING_GROUP}/v1alpha1", name, new, job)


def to_v0alpha0(items: Sequence[Item], job: Job) -> None:
    """Convert from today's form."""
    for item in items:
        policy, spec = _parts(item)
        unlisted = job.settings.section(AccessSettings).unlisted_caller
        listed = unlisted is UnlistedCaller.PROCEED  # callers that no rule names are then allowed
        converted = old_rules(spec, policy.action, job, may_leave_out=not listed)
        if isinstance(converted, NotExpressible):
            _keep(item, converted, job)
            continue
        group = NETWORKING_GROUP if converted.needs_cel else PROTOTYPE_GROUP
        _lose_grant(item, spec, group, job)
        asking = policy.action is Action.ASK
        # a policy can have only one rule that asks an authorizer
        chunks = [[rule] for rule in converted.rules] if asking else [converted.rules]
        for number, rules in enumerate(chunks, 1):
            old: Manifest = {"targetRefs": spec["targetRefs"].plain()}
            if policy.action is Action.DENY:
                old["action"] = "Deny"
            old["rules"] = list[Plain](rules)
            name = item.document.name if len(chunks) == 1 else f"{item.document.name}-{number}"
            _write(item, f"{group}/v0alpha0", name, old, job)


def _parts(item: Item) -> tuple[Policy, Node]:
    policy = item.policy
    assert isinstance(policy, Policy)  # noqa: S101 - the registry has chosen it
    assert item.document.node is not None  # noqa: S101 - policies are read with positions
    return policy, item.document.node["spec"]


def _ask(rule: Node) -> Node | None:
    authorization = rule.get("authorization")
    return authorization.get("externalAuth") if authorization is not None else None


def _keep(item: Item, why: NotExpressible, job: Job) -> None:
    message = f"{why.message}: {item.policy.ref} is not converted"
    job.keep(item.document, codes.POLICY_LEFT_OUT, message, why.span, help=why.way_out)


def _chunks(converted: Rules, name: str) -> Iterator[tuple[list[Plain], str]]:
    """Split rules into policies for the same target, because a policy has at most ten rules."""
    rules = converted.rules
    for number, start in enumerate(range(0, len(rules), _MAX_RULES), 1):
        yield list[Plain](rules[start : start + _MAX_RULES]), name if number == 1 else f"{name}-{number}"


def _lose_grant(item: Item, spec: Node, group: str, job: Job) -> None:
    """Report a ReferenceGrant that names the old API group of the policy."""
    filters = [spec.get("externalAuth"), *(_ask(rule) for rule in spec.get("rules") or ())]
    for filter_ in filters:
        where = filter_["backendRef"].get("namespace") if filter_ is not None else None
        if (
            where is not None
            and where.text != (item.policy.ref.namespace or "default")
            and group != item.document.group
        ):
            message = f"the ReferenceGrant in {where.text} has to name the group {group} for this authorizer"
            job.lose(codes.GRANT, message, where.span, help=f"write from: [{{group: {group}, ..}}] in it")


def _write(item: Item, api_version: str, name: str, spec: Manifest, job: Job) -> None:
    document = item.document
    chosen = job.name(document.kind, item.policy.ref.namespace or "default", name)
    job.write(
        document,
        {
            "apiVersion": api_version,
            "kind": document.kind,
            "metadata": metadata_of(document, chosen),
            "spec": spec,
        },
    )
