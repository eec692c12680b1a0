"""The enforced policies: rule `n` has its own identity, path and methods. And the same rules as Istio writes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from envoy.config.rbac.v3 import rbac_pb2
from google.protobuf.json_format import ParseDict

from bench.objects import policy_of
from bench.plans import TRUST_DOMAIN, PolicyPlan, RulePlan
from eastgate.authority.authority import Authority
from eastgate.authority.reading import Manifests
from eastgate.cluster import Pod, service_account_id
from eastgate.dialects import Policy
from eastgate.dialects.gep3779.model import Action, Level
from eastgate.dialects.gep3779.model import Policy as GepPolicy
from eastgate.envoy.config.typed import Plain
from eastgate.settings import Settings

__all__ = [
    "SERVER",
    "SETTINGS",
    "STRANGER",
    "authority_of",
    "classic_rules",
    "identity",
    "path",
    "pod",
    "policy",
]

SETTINGS = Settings(trust_domain=TRUST_DOMAIN)
SERVER = service_account_id(TRUST_DOMAIN, "shop", "server")
STRANGER = service_account_id(TRUST_DOMAIN, "elsewhere", "nobody")
_METHODS = ("GET", "POST")
_NAMESPACES = 100
_PATHS = 8  # as in the worlds of the section `http`: a service has fewer paths than callers


def _account(number: int) -> tuple[str, str]:
    return f"team-{number % _NAMESPACES}", f"app-{number}"


def identity(number: int) -> str:
    """Return the identity that a rule names."""
    return service_account_id(TRUST_DOMAIN, *_account(number))


def path(number: int) -> str:
    """Return the path that a rule allows."""
    return f"/api/things-{number % _PATHS}"


def policy(number: int, *, http: bool, other: bool = False, anything: bool = False) -> Policy:
    """Return a policy with one rule. `other`: the same policy with another path or account.

    `anything`: a request policy that allows its caller every request.
    """
    account = "/".join(("elsewhere", f"other-{number}") if other and not http else _account(number))
    rule = RulePlan(accounts=(account,))
    if http:
        rule = RulePlan(accounts=(account,), methods=_METHODS, paths=("/changed" if other else path(number),))
    if anything:
        rule = RulePlan(accounts=(account,))
    made = policy_of(PolicyPlan("shop", f"p{number}", Action.ALLOW, (rule,), labels={"app": "server"}))
    return replace(made, level=Level.APPLICATION) if anything and isinstance(made, GepPolicy) else made


def pod(number: int) -> Pod:
    """Return a pod that all policies target."""
    return Pod("shop", f"server-{number}", labels={"app": "server"}, service_account="server")


def authority_of(rules: int, *, http: bool, pods: int = 1, anything: bool = False) -> Authority:
    """Return a world with only the pods, and one policy for each rule."""
    policies = [policy(number, http=http, anything=anything) for number in range(rules)]
    return Authority(Manifests(SETTINGS, [pod(number) for number in range(pods)], policies))


def classic_rules(rules: int, kind: str, fields: Plain, compared: str, *, anything: bool = False) -> Any:
    """Return the rules as Istio writes them: an RBAC policy for each, with ALL of caller, method and path.

    `kind` names the source of the caller: filter state, as in waypoints, or the certificate, as in sidecars.
    """
    policies = {}
    for number in range(rules):
        who = {kind: {**fields, compared: {"exact": identity(number)}}}
        methods = [{"header": {"name": ":method", "string_match": {"exact": method}}} for method in _METHODS]
        what = [{"url_path": {"path": {"exact": path(number)}}}]
        every = [{"or_rules": {"rules": methods}}, {"or_rules": {"rules": what}}]
        policies[f"ns[shop]-policy[p{number:05}]-rule[0]"] = {
            "permissions": [{"and_rules": {"rules": [{"any": True}] if anything else every}}],
            "principals": [{"and_ids": {"ids": [{"or_ids": {"ids": [who]}}]}}],
        }
    return ParseDict({"action": "ALLOW", "policies": policies}, rbac_pb2.RBAC())
