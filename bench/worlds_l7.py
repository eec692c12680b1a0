"""Worlds with policies on HTTP, or on calls of tools, and questions about them.

HTTP: the pods and targets of `worlds.generate`. Each rule also has two methods (one in five: all) and a path, exact
(half), by prefix or by suffix. There are few paths, so that nearly every question meets rules for other paths.

MCP: a Gateway has 25 policies, for ten agents of its namespace and twenty tools of four backends. A rule names one
agent (one in ten: of another namespace) and one to four tools, a third of them as `backend/tool`. One policy in six
denies, but never the first of a Gateway.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from bench.plans import TRUST_DOMAIN, Ask, Plan, PolicyPlan, RulePlan
from bench.worlds import METHODS, ask_some, generate
from eastgate.cluster import service_account_id
from eastgate.dialects.gep3779.model import Action

__all__ = ["ask_paths", "ask_tools", "http_world", "mcp_world"]

_PATHS = 8
_AGENTS = 10
_TOOLS = tuple(f"tool-{number}" for number in range(20))
_BACKENDS = tuple(f"backend-{number}" for number in range(4))
_POLICIES_PER_GATEWAY = 25


def http_world(policies: int, seed: int = 1) -> Plan:
    """Return a world as `worlds.generate` does, with policies at the application level."""
    random = Random(f"{seed}/http/{policies}")
    plan = generate(policies, seed)
    return replace(plan, policies=[_with_http(random, policy) for policy in plan.policies])


def ask_paths(plan: Plan, targeted: list[str], count: int, seed: int = 1) -> list[Ask]:
    """Return the questions of `worlds.ask_some` with a method and a path.

    Half of them have the path of a rule nearby. The others have any of the few paths, or (one in ten) an unknown path.
    """
    random = Random(f"{seed}/ask-paths/{count}")
    nearby: dict[tuple[str, str], list[RulePlan]] = {}
    for policy in plan.policies:
        nearby.setdefault((policy.namespace, policy.labels.get("app", "")), []).extend(policy.rules)
    return [_asked(random, ask, nearby) for ask in ask_some(plan, targeted, count, seed)]


def mcp_world(policies: int, seed: int = 1) -> Plan:
    """Return Gateways with policies on them."""
    random = Random(f"{seed}/mcp/{policies}")
    gateways = [(f"team-{number}", "gateway") for number in range(max(2, -(-policies // _POLICIES_PER_GATEWAY)))]
    namespaces = [namespace for namespace, _ in gateways]
    made = []
    for number in range(policies):
        namespace, gateway = gateways[number % len(gateways)]
        first = number < len(gateways)
        action = Action.DENY if not first and random.random() < 1 / 6 else Action.ALLOW
        rules = tuple(_tool_rule(random, namespace, namespaces) for _ in range(random.choice((1, 1, 2, 3))))
        made.append(PolicyPlan(namespace, f"p{number}", action, rules, gateway=gateway))
    agents = [(namespace, f"agent-{agent}") for namespace in namespaces for agent in range(_AGENTS)]
    return Plan([], [], made, [service_account_id(TRUST_DOMAIN, *agent) for agent in agents], gateways)


def ask_tools(plan: Plan, targeted: list[str], count: int, seed: int = 1) -> list[Ask]:
    """Return calls of tools at targeted Gateways: nine of ten from an agent of the same namespace."""
    random = Random(f"{seed}/ask-tools/{count}")
    asks = []
    for _ in range(count):
        point = random.choice(targeted)
        namespace = point.removeprefix("Gateway ").partition("/")[0]
        identity = service_account_id(TRUST_DOMAIN, namespace, f"agent-{random.randrange(_AGENTS)}")
        if random.random() < 0.1:
            identity = random.choice(plan.identities)
        tool, backend = random.choice(_TOOLS), random.choice(_BACKENDS)
        asks.append(Ask(point, "".join(identity), 80, "POST", f"/{backend}", tool, backend))
    return asks


def _with_http(random: Random, policy: PolicyPlan) -> PolicyPlan:
    """Return the policy with HTTP rules. Its target cannot be a Service in a sidecar mesh, so it selects the pods."""
    labels = policy.labels if policy.service is None else {"app": policy.service}
    return replace(policy, rules=tuple(_http_rule(random, one) for one in policy.rules), labels=labels, service=None)


def _http_rule(random: Random, rule: RulePlan) -> RulePlan:
    number = random.randrange(_PATHS)
    path = (f"/api/things-{number}", f"/api/things-{number}", f"/api/things-{number}/*", f"*.type-{number}")
    methods = tuple(random.sample(METHODS, 2)) if random.random() < 0.8 else METHODS
    return replace(rule, methods=methods, paths=(random.choice(path),))


def _asked(random: Random, ask: Ask, nearby: dict[tuple[str, str], list[RulePlan]]) -> Ask:
    namespace, _, pod = ask.workload.partition("/")
    rules = nearby.get((namespace, pod.rpartition("-")[0]))
    if not rules or random.random() < 0.5:
        return replace(ask, method=random.choice(METHODS), path=_asked_path(random))
    rule = random.choice(rules)
    identity = ask.identity
    if rule.accounts:
        where, name = random.choice(rule.accounts).split("/")
        identity = service_account_id(TRUST_DOMAIN, where, "app-0" if name == "*" else name)
    port = random.choice(rule.ports or (ask.port,))
    path = rule.paths[0].replace("*", "/some" if rule.paths[0].startswith("*") else "some")
    return replace(ask, identity=identity, port=port, method=random.choice(rule.methods), path=path)


def _asked_path(random: Random) -> str:
    number = random.randrange(_PATHS)
    kind = random.random()
    if kind < 0.1:
        return f"/none/{random.random()}"
    if kind < 0.5:
        return f"/api/things-{number}"
    return f"/api/things-{number}/some" if kind < 0.7 else f"/files/name.type-{number}"


def _tool_rule(random: Random, namespace: str, namespaces: list[str]) -> RulePlan:
    where = namespace if random.random() < 0.9 else random.choice(namespaces)
    tools = [
        tool if random.random() < 2 / 3 else f"{random.choice(_BACKENDS)}/{tool}"
        for tool in random.sample(_TOOLS, random.randint(1, 4))
    ]
    return RulePlan(accounts=(f"{where}/agent-{random.randrange(_AGENTS)}",), tools=tuple(tools))
