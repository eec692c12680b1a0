"""An independent implementation of AccessPolicy, from the text of the proposal and the rulings, on plain manifests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]

BASE = ("initialize", "ping", "tools/list")


@dataclass(frozen=True)
class Call:
    """One message to one backend. Without a method it is not an MCP message."""

    identity: str | None
    mcp_method: str | None
    tool: str | None
    method: str
    path: str
    host: str
    backend: str
    session: str | None = None


@dataclass(frozen=True)
class AccessRules:
    """The policies, the answers of authorizers, and the setting that chooses a reading."""

    policies: list[Manifest]
    answers: dict[str, str]
    unlisted_caller: str

    def allows(self, call: Call, *, through_gateway: bool) -> bool:
        """Return whether the Gateway level and then the Backend level allow the call."""
        levels = [("Gateway", "g")] if through_gateway else []
        return all(self._level(kind, name, call) for kind, name in [*levels, ("XBackend", call.backend)])

    def _level(self, kind: str, name: str, call: Call) -> bool:
        here = [
            p
            for p in self.policies
            if any(r["kind"] == kind and r["name"] == name for r in p["spec"]["targetRefs"]) and not _audit(p)
        ]
        at_gateway = kind == "Gateway"
        for policy, rule in _rules(here):
            answer = self.answers.get(_authorizer(policy, rule) or "")
            if _asks(policy, rule) and _matches_to_ask(policy, rule, call, at_gateway) and answer != "allow":
                return False
        denying = [p for p in here if p["spec"].get("action") == "Deny"]
        if any(_denies(p, rule, call, at_gateway) for p, rule in _rules(denying)):
            return False
        inline = [
            p
            for p in here
            if p["spec"].get("action", "Allow") == "Allow" and not any(_asks(p, r) for _, r in _rules([p]))
        ]
        if not inline:
            return True
        if self.unlisted_caller == "proceed" and not any(_named(p, rule, call) for p, rule in _rules(inline)):
            return True
        return any(_allows(p, rule, call, at_gateway) for p, rule in _rules(inline))


def _audit(policy: Manifest) -> bool:
    return bool(policy["metadata"].get("annotations", {}).get("eastgate.dev/mode") == "audit")


def _today(policy: Manifest) -> bool:
    return bool(policy["apiVersion"].endswith("v1alpha1"))


def _rules(policies: list[Manifest]) -> Iterator[tuple[Manifest, Manifest]]:
    for policy in policies:
        for rule in policy["spec"].get("rules", [{"name": "everything"}]):
            yield policy, rule


def _asks(policy: Manifest, rule: Manifest) -> bool:
    if _today(policy):
        return bool(policy["spec"]["action"] == "ExternalAuth")
    return bool(rule.get("authorization", {}).get("type") == "ExternalAuth")


def _authorizer(policy: Manifest, rule: Manifest) -> str | None:
    filter_ = policy["spec"].get("externalAuth") or rule.get("authorization", {}).get("externalAuth")
    return f"{filter_['backendRef']['name']}.n:{filter_['backendRef']['port']}" if filter_ else None


def _named(policy: Manifest, rule: Manifest, call: Call) -> bool:
    source = rule.get("source")
    if source is None:
        return True
    if source["type"] == "SPIFFE":
        return bool(call.identity == source["spiffe"])
    account = source["serviceAccount"]
    return call.identity == f"spiffe://td/ns/{account.get('namespace', 'n')}/sa/{account['name']}"


def _matches_to_ask(policy: Manifest, rule: Manifest, call: Call, at_gateway: bool) -> bool:
    return _named(policy, rule, call) and (not _today(policy) or _attributes(rule, call, at_gateway))


def _listed(tools: list[str], call: Call, at_gateway: bool) -> bool:
    for tool in tools:
        if at_gateway and "/" in tool:
            backend, name = tool.split("/", 1)
            if (backend, name) == (call.backend, call.tool):
                return True
        elif tool == call.tool:
            return True
    return False


def _base(call: Call) -> bool:
    if call.mcp_method is None:
        return call.method == "GET" or (call.method == "DELETE" and call.session is not None)
    return call.mcp_method in BASE or call.mcp_method.startswith("notifications/")


def _denies(policy: Manifest, rule: Manifest, call: Call, at_gateway: bool) -> bool:
    if not _named(policy, rule, call):
        return False
    if _today(policy):
        return _attributes(rule, call, at_gateway)
    if "authorization" not in rule:
        return True
    return call.mcp_method == "tools/call" and _listed(rule["authorization"]["tools"], call, at_gateway)


def _allows(policy: Manifest, rule: Manifest, call: Call, at_gateway: bool) -> bool:
    if not _named(policy, rule, call):
        return False
    if _today(policy):
        return _attributes(rule, call, at_gateway)
    tools = rule.get("authorization", {}).get("tools", [])
    return _base(call) or (call.mcp_method == "tools/call" and _listed(tools, call, at_gateway))


def _attributes(rule: Manifest, call: Call, at_gateway: bool) -> bool:
    """Match the v1alpha1 form: a missing field matches everything, an empty list nothing."""
    wanted = rule.get("authorization")
    if wanted is None:
        return True
    if "methods" in wanted and call.method not in wanted["methods"]:
        return False
    if "paths" in wanted and not any(_path(p, call.path) for p in wanted["paths"]):
        return False
    if "hosts" in wanted and not any(_host(h, call.host) for h in wanted["hosts"]):
        return False
    return "mcp" not in wanted or _mcp(wanted["mcp"], call, at_gateway)


def _path(match: Manifest, path: str) -> bool:
    if match.get("type", "PathPrefix") == "Exact":
        return bool(path == match["value"])
    stem = match["value"].rstrip("/")
    return path == (stem or "/") or path.startswith(stem + "/")


def _host(pattern: str, host: str) -> bool:
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern


def _mcp(wanted: Manifest, call: Call, at_gateway: bool) -> bool:
    if wanted.get("mcpBaseProtocolMethodsOption") == "MATCH_BASE_PROTOCOL_METHODS" and (
        _base(call) or (call.mcp_method or "").startswith(("completion/", "logging/"))
    ):
        return True
    if "methods" not in wanted:
        return wanted.get("mcpBaseProtocolMethodsOption") != "MATCH_BASE_PROTOCOL_METHODS"
    if call.mcp_method is None:
        return False
    for method in wanted["methods"]:
        same = call.mcp_method == method["name"] or (
            "/" not in method["name"] and call.mcp_method.startswith(method["name"] + "/")
        )
        if same and ("params" not in method or _listed(method["params"], call, at_gateway)):
            return True
    return False
