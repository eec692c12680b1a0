"""Converts the rules of an AccessPolicy to the other form, or says why that cannot be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import field

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.convert import codes
from eastgate.convert.model import Assumption, Job, Manifest
from eastgate.dialects.accesspolicy.model import Action
from eastgate.reading.manifests import Plain
from eastgate.reading.manifests.node import Node

_MOST_PARAMS, _LONGEST_PARAM = 10, 20
_MATCH = "MATCH_BASE_PROTOCOL_METHODS"
_ASSUME = "if no server behind has completion/*, logging/* and server/discover, say so: --assume mcp-base-protocol"


@dataclass(frozen=True, slots=True)
class Unsayable:
    """Why there is nothing to say that would not be wider."""

    message: str
    span: Span
    way_out: str | None = None


@dataclass(slots=True)
class Rules:
    """Rules in the other form; `needs_cel`: one of them is an expression."""

    rules: list[Manifest] = field(default_factory=list)
    needs_cel: bool = False


# From v0alpha0 to v1alpha1


def new_rules(spec: Node, action: Action, job: Job) -> Rules | Unsayable:
    """Convert rules to today's form. Every caller that was named stays named."""
    converted = Rules()
    at_gateway = any(ref["kind"].text == "Gateway" for ref in spec["targetRefs"])
    for rule in spec["rules"]:
        named_rule: Manifest = {"name": rule["name"].text, "source": rule["source"].plain()}
        if action is Action.ASK:
            converted.rules.append(named_rule)
        elif action is Action.DENY:
            conditions = _denied(rule, at_gateway)
            if isinstance(conditions, Unsayable):
                return conditions
            converted.rules += _numbered(named_rule, conditions)
        else:
            converted.rules += _numbered(named_rule, _allowed(rule, at_gateway, job))
    return converted


def _numbered(named_rule: Manifest, conditions: Sequence[Manifest | None]) -> list[Manifest]:
    """Repeat the rule for each condition. None is no condition."""
    rules: list[Manifest] = []
    for number, condition in enumerate(conditions, 1):
        name = f"{named_rule['name']}"
        rule: Manifest = {**named_rule, "name": name if number == 1 else f"{name[:60]}-{number}"}
        rules.append(rule if condition is None else {**rule, "authorization": condition})
    return rules


def _denied(rule: Node, at_gateway: bool) -> list[Manifest | None] | Unsayable:
    authorization = rule.get("authorization")
    if authorization is None:
        return [None]
    if authorization["type"].text == "CEL":
        return [authorization.plain()]  # type: ignore[list-item] # a mapping
    calls, unsaid = _calls(authorization["tools"], at_gateway)
    if unsaid is not None:
        return unsaid
    return [_inline([call]) if isinstance(call, dict) else _cel(call) for call in calls] or [_inline([])]


def _allowed(rule: Node, at_gateway: bool, job: Job) -> list[Manifest | None]:
    """Return the tools; and what calling them needs, as far as it can be said without letting more through."""
    authorization = rule.get("authorization")
    expressions: list[Manifest] = []
    methods: list[Manifest] = []
    if authorization is not None and authorization["type"].text == "CEL":
        plain = authorization.plain()
        assert isinstance(plain, dict)  # noqa: S101 - the schema has checked it
        expressions.append(plain)
    elif authorization is not None:
        calls, unsaid = _calls(authorization["tools"], at_gateway)
        methods = [call for call in calls if isinstance(call, dict)]
        expressions = [_cel(call) for call in calls if isinstance(call, str)]
        if unsaid is not None:
            job.lose(codes.RULE_LEFT_OUT, unsaid.message, unsaid.span)
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


def _calls(tools: Node, at_gateway: bool) -> tuple[list[Manifest | str], Unsayable | None]:
    """Convert calls of tools: by `params`, or where those are too many or too long, by an expression."""
    names = list(tools)
    if len(names) <= _MOST_PARAMS and all(len(tool.text) <= _LONGEST_PARAM for tool in names):
        return [{"name": "tools/call", "params": [tool.text for tool in names]}], None
    qualified = [tool for tool in names if at_gateway and "/" in tool.text]
    plain = [tool.text for tool in names if tool not in qualified]
    calls: list[Manifest | str] = []
    short = [tool for tool in qualified if len(tool.text) <= _LONGEST_PARAM][:_MOST_PARAMS]
    if short:
        calls.append({"name": "tools/call", "params": [tool.text for tool in short]})
    if plain:
        listed = ", ".join(json.dumps(name, ensure_ascii=False) for name in plain)
        calls.append(f"request.mcp.tool_name in [{listed}]")
    left = next((tool for tool in qualified if tool not in short), None)
    if left is None:
        return calls, None
    return calls, Unsayable(
        f"v1alpha1 cannot name `{left.text}`, of one backend and longer than 20 characters", left.span
    )


# From v1alpha1 to v0alpha0


def old_rules(spec: Node, action: Action, job: Job, *, may_leave_out: bool) -> Rules | Unsayable:
    """Convert rules to the proposal's form. What cannot be said is left out of a policy that allows, and ends one that
    does not.
    """
    rules = spec.get("rules")
    if rules is None:
        return Unsayable("v0alpha0 has no rule for everybody", spec["action"].span)
    converted = Rules()
    for rule in rules:
        new = _old_rule(rule, action, job)
        if isinstance(new, Unsayable):
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
        return Unsayable("v0alpha0 has no policy that allows nothing", rules.span)
    return converted


def _old_rule(rule: Node, action: Action, job: Job) -> Manifest | Unsayable:
    source, authorization = rule.get("source"), rule.get("authorization")
    if source is None:
        return Unsayable("v0alpha0 has no rule for everybody", rule["name"].span)
    named_rule: Manifest = {"name": rule["name"].text, "source": source.plain()}
    if authorization is None or _matches_anything(authorization):
        if action is Action.ALLOW:
            return Unsayable("v0alpha0 allows tools by their names, and not everything", rule["name"].span)
        return named_rule
    if action is Action.ASK:
        return Unsayable("in v0alpha0 an authorizer is asked about all that a source does", authorization.span)
    condition = _old_condition(authorization, action, job)
    return condition if isinstance(condition, Unsayable) else {**named_rule, "authorization": condition}


def _matches_anything(authorization: Node) -> bool:
    """Return whether it matches anything: `mcp` that names no methods and no base protocol is no `mcp`."""
    if authorization["type"].text != "Inline" or any(key not in ("type", "mcp") for key, _ in authorization.items()):
        return False
    mcp = authorization.get("mcp")
    return mcp is None or ("methods" not in mcp and not _with_base(mcp))


def _with_base(mcp: Node) -> bool:
    option = mcp.get("mcpBaseProtocolMethodsOption")
    return option is not None and option.text == _MATCH


def _old_condition(authorization: Node, action: Action, job: Job) -> Manifest | Unsayable:
    if authorization["type"].text == "CEL":
        if action is Action.DENY:
            return authorization.plain()  # type: ignore[return-value] # a mapping
        return Unsayable("in v0alpha0 this would also allow to initialize and to list tools", authorization.span)
    other = next((key for key, _ in authorization.items() if key not in ("type", "mcp")), None)
    mcp = authorization.get("mcp")
    if other is not None or mcp is None:
        span = authorization.key_span(other) if other is not None else authorization.span
        return Unsayable(f"v0alpha0 knows tools and no {other or 'other requests'}", span)
    with_base, methods = _with_base(mcp), mcp.get("methods") or ()
    tools, exact = _tools(methods)
    if action is Action.DENY:
        if with_base or not exact:
            return Unsayable("v0alpha0 denies tools by their names, and no other methods", mcp.span)
        return {"type": "InlineTools", "tools": tools}
    if not with_base:
        return Unsayable("in v0alpha0 this would also allow to initialize and to list tools", mcp.span)
    if not job.assumes(Assumption.MCP_BASE_PROTOCOL):
        return Unsayable("in v0alpha0 this would also allow server/discover", mcp.span, _ASSUME)
    if not exact:
        message = "of the MCP methods only calls of tools by their names stay"
        job.lose(codes.RULE_LEFT_OUT, message, mcp["methods"].span)
    return {"type": "InlineTools", "tools": tools}


def _tools(methods: Iterable[Node]) -> tuple[list[Plain], bool]:
    """Return the tools that are named, and whether that is all that the methods say."""
    tools: list[Plain] = []
    exact = True
    for method in methods:
        if method["name"].text == "tools/call" and "params" in method:
            tools += [param.text for param in method["params"]]
        else:
            exact = False
    return tools, exact
