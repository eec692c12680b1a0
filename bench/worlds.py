"""Generated worlds and questions. The same seed gives the same ones on every machine.

A namespace has 25 policies and 20 pods: ten applications with two replicas, each application with a service account.
Policies target an application (60%), one version of it (15%), a tier (15%), a Service (5%) or all pods of the
namespace (5%), so that about five policies target a pod. One in six denies. A rule names one to four service accounts
(70%), all accounts of a namespace (15%), identities of another trust domain (10%) or no caller, which matches all (5%).
Six of ten rules name one or two ports.
"""

from __future__ import annotations

from random import Random

from bench.plans import TRUST_DOMAIN, Ask, Plan, PolicyPlan, RulePlan
from eastgate.cluster import ContainerPort, Pod, Service, ServicePort, service_account_id
from eastgate.dialects.gep3779.model import Action

__all__ = ["PORTS", "ask_http", "ask_many", "ask_some", "crowded", "generate", "with_paths"]

PORTS = (80, 443, 3306, 5432, 6379, 8080, 8443, 9000, 9080, 9090, 9093, 15020)
FOREIGN = "partner.example"
METHODS = ("GET", "POST", "PUT", "DELETE")

_APPS_PER_NAMESPACE = 10
_REPLICAS = 2
_POLICIES_PER_NAMESPACE = 25


def generate(policies: int, seed: int = 1, *, replicas: int = _REPLICAS) -> Plan:
    """Return a world with this many policies and 0.8 pods for each of them, but at least two namespaces.

    `replicas`: the pods of each application; more than two give more pods.
    """
    random = Random(f"{seed}/{policies}")
    namespaces = [f"team-{number}" for number in range(max(2, -(-policies // _POLICIES_PER_NAMESPACE)))]
    accounts = [f"{namespace}/app-{app}" for namespace in namespaces for app in range(_APPS_PER_NAMESPACE)]
    return Plan(
        pods=[
            _pod(ns, app, replica)
            for ns in namespaces
            for app in range(_APPS_PER_NAMESPACE)
            for replica in range(replicas)
        ],
        services=[_service(namespace, app) for namespace in namespaces for app in range(_APPS_PER_NAMESPACE)],
        policies=[
            _policy(random, number, namespaces[number % len(namespaces)], namespaces) for number in range(policies)
        ],
        identities=[service_account_id(TRUST_DOMAIN, *account.split("/")) for account in accounts],
    )


def crowded(policies: int, seed: int = 1) -> Plan:
    """Return a world with all policies on ONE workload, and forty callers for each policy.

    Among so many rules, one that matches all callers or all ports would decide alone. So each rule names ports, and
    accounts (one rule in twenty: all accounts of a namespace) or identities of another trust domain.
    """
    random = Random(f"{seed}/crowded/{policies}")
    namespaces = [f"team-{number}" for number in range(max(2, -(-policies // _POLICIES_PER_NAMESPACE)))]
    return Plan(
        pods=[_pod("team-0", 0, 0)],
        services=[],
        policies=[
            PolicyPlan("team-0", f"p{number}", action, (_narrow_rule(random, action, namespaces),), {"app": "app-0"})
            for number in range(policies)
            for action in (_action(random),)
        ],
        identities=[service_account_id(TRUST_DOMAIN, ns, f"app-{app}") for ns in namespaces for app in range(1000)],
    )


def with_paths(rules: int, seed: int = 1) -> Plan:
    """Return one workload, and policies with ten rules each on methods and paths: exact, by prefix and by suffix."""
    random = Random(f"{seed}/paths/{rules}")
    accounts = [f"team-0/app-{number}" for number in range(max(2, rules // 5))]
    plans = [_http_rule(random, number, accounts) for number in range(rules)]
    return Plan(
        pods=[_pod("team-0", 0, 0)],
        services=[],
        policies=[
            PolicyPlan("team-0", f"p{at}", Action.ALLOW, tuple(plans[at : at + 10]), {"app": "app-0"})
            for at in range(0, rules, 10)
        ],
        identities=[service_account_id(TRUST_DOMAIN, *account.split("/")) for account in accounts],
    )


def _pod(namespace: str, app: int, replica: int) -> Pod:
    return Pod(
        namespace,
        f"app-{app}-{replica}",
        {"app": f"app-{app}", "tier": f"tier-{app % 3}", "version": f"v{replica}"},
        service_account=f"app-{app}",
        ports=(ContainerPort(8080, "http"),),
    )


def _service(namespace: str, app: int) -> Service:
    return Service(namespace, f"app-{app}", {"app": f"app-{app}"}, (ServicePort(80, "http"),))


def _policy(random: Random, number: int, namespace: str, namespaces: list[str]) -> PolicyPlan:
    app = f"app-{random.randrange(_APPS_PER_NAMESPACE)}"
    kind = random.random()
    labels: dict[str, str] = {}
    if kind < 0.60:
        labels = {"app": app}
    elif kind < 0.75:
        labels = {"app": app, "version": f"v{random.randrange(_REPLICAS)}"}
    elif kind < 0.90:
        labels = {"tier": f"tier-{random.randrange(3)}"}
    service = app if 0.90 <= kind < 0.95 else None
    rules = _rules(random, namespace, namespaces)
    return PolicyPlan(namespace, f"p{number}", _action(random), rules, labels, service)


def _action(random: Random) -> Action:
    return Action.DENY if random.random() < 1 / 6 else Action.ALLOW


def _rules(random: Random, namespace: str, namespaces: list[str]) -> tuple[RulePlan, ...]:
    return tuple(_rule(random, namespace, namespaces) for _ in range(random.choice((1, 1, 2, 3))))


def _rule(random: Random, namespace: str, namespaces: list[str]) -> RulePlan:
    kind = random.random()
    near = [namespace, *random.choices(namespaces, k=2)]  # half of the callers are neighbours
    accounts: tuple[str, ...] = ()
    identities: tuple[str, ...] = ()
    if kind < 0.70:
        accounts = tuple(_account(random, random.choice(near)) for _ in range(random.randint(1, 4)))
    elif kind < 0.85:
        accounts = (f"{random.choice(near)}/*",)
    elif kind < 0.95:
        identities = tuple(service_account_id(FOREIGN, *_account(random, namespace).split("/")) for _ in range(2))
    ports = tuple(random.sample(PORTS, random.randint(1, 2))) if random.random() < 0.6 else ()
    return RulePlan(tuple(dict.fromkeys(accounts)), tuple(dict.fromkeys(identities)), ports)


def _narrow_rule(random: Random, action: Action, namespaces: list[str]) -> RulePlan:
    kind = random.random()
    ports = tuple(random.sample(PORTS, 2))
    if kind < 0.05 and action is Action.ALLOW:
        return RulePlan(accounts=(f"{random.choice(namespaces)}/*",), ports=ports)
    names = [(random.choice(namespaces), f"app-{random.randrange(1000)}") for _ in range(random.randint(1, 4))]
    if kind < 0.15:
        return RulePlan(identities=tuple(service_account_id(FOREIGN, *name) for name in names), ports=ports)
    return RulePlan(accounts=tuple("/".join(name) for name in names), ports=ports)


def _account(random: Random, namespace: str) -> str:
    return f"{namespace}/app-{random.randrange(_APPS_PER_NAMESPACE)}"


def _http_rule(random: Random, number: int, accounts: list[str]) -> RulePlan:
    path = f"/api/v{number % 3}/things-{number}"
    written = {0: path, 1: path, 2: f"{path}/*", 3: f"*.type-{number}"}[random.randrange(4)]
    who = () if random.random() < 0.2 else tuple(random.sample(accounts, min(len(accounts), 2)))
    return RulePlan(accounts=who, methods=tuple(random.sample(METHODS, 2)), paths=(written,))


# Questions


def ask_some(plan: Plan, targeted: list[str], count: int, seed: int = 1) -> list[Ask]:
    """Return questions about targeted workloads: half from the same namespace, one in ten from another trust domain.

    They share no string objects with the policies, as a request shares none with a policy file.
    """
    random = Random(f"{seed}/ask/{count}")
    return [_ask(random, random.choice(targeted), plan) for _ in range(count)]


def ask_many(plan: Plan, count: int, seed: int = 1) -> list[Ask]:
    """Return questions about the one workload. Half of them have the caller and port of a rule."""
    random = Random(f"{seed}/ask/{count}")
    return [
        _ask_as_named(random, plan) if random.random() < 0.5 else _ask(random, "team-0/app-0-0", plan)
        for _ in range(count)
    ]


def ask_http(plan: Plan, count: int, seed: int = 1) -> list[Ask]:
    """Return questions with method and path: half with the path of a rule, half with a path that no rule has."""
    random = Random(f"{seed}/ask/{count}")
    asks = []
    for _ in range(count):
        rule = random.choice(random.choice(plan.policies).rules)
        identity = random.choice(plan.identities)
        if rule.accounts and random.random() < 0.8:
            identity = service_account_id(TRUST_DOMAIN, *random.choice(rule.accounts).split("/"))
        path = rule.paths[0].replace("*", "/some/thing") if random.random() < 0.5 else f"/none/{random.random()}"
        asks.append(Ask("team-0/app-0-0", "".join(identity), 8080, random.choice(METHODS), path))
    return asks


def _ask(random: Random, workload: str, plan: Plan) -> Ask:
    kind = random.random()
    port = random.choice(PORTS)
    if kind < 0.03:
        return Ask(workload, None, port)
    namespace, name = workload.partition("/")[0], f"app-{random.randrange(_APPS_PER_NAMESPACE)}"
    if kind < 0.50:
        return Ask(workload, service_account_id(TRUST_DOMAIN, namespace, name), port)
    if kind < 0.60:
        return Ask(workload, service_account_id(FOREIGN, namespace, name), port)
    namespace, _, name = random.choice(plan.identities).removeprefix(f"spiffe://{TRUST_DOMAIN}/ns/").split("/")
    return Ask(workload, service_account_id(TRUST_DOMAIN, namespace, name), port)


def _ask_as_named(random: Random, plan: Plan) -> Ask:
    rule = random.choice(random.choice(plan.policies).rules)
    port = random.choice(rule.ports or PORTS)
    if rule.identities:
        namespace, _, name = random.choice(rule.identities).removeprefix(f"spiffe://{FOREIGN}/ns/").split("/")
        return Ask("team-0/app-0-0", service_account_id(FOREIGN, namespace, name), port)
    namespace, name = random.choice(rule.accounts or ("team-0/app-1",)).split("/")
    name = f"app-{random.randrange(_APPS_PER_NAMESPACE)}" if name == "*" else name
    return Ask("team-0/app-0-0", service_account_id(TRUST_DOMAIN, namespace, name), port)
