"""Answers for quick reading: words of policies, one row for a verdict, and one caret for a reason."""

from __future__ import annotations

import pytest

from eastgate import Question, QuestionError
from eastgate.ir import And, InNetwork, Is, Labelled, Not, OneOf, Or, Predicate, Prefix, Present
from eastgate.ir.addresses import parse_network
from eastgate.ir.attributes import (
    APPLICATION,
    FORWARDED_ADDRESS,
    METHOD,
    PACKET_SOURCE,
    PATH,
    PORT,
    REFUSED_PATH,
    SOURCE_LABELS,
    SOURCE_NAMESPACE,
    TRANSPORT,
    VICINITY,
    claim,
)
from eastgate.ir.labels import Operator, Requirement, Selector
from eastgate.reports.cluster import Cluster
from eastgate.reports.conditions import TWO_LINES, condition_text
from eastgate.reports.depends import answer_question
from eastgate.reports.describe import describe
from eastgate.reports.describe.modes import modes, summary
from eastgate.reports.explain import explain
from tests.reports.world import cluster_of

NAME = "kubernetes.io/metadata.name"
APP = "\n---\n".join(
    (
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: front, labels: {team: web}}",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: shop, istio-injection: enabled}}",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: data, labels: {team: data}}",
        *(
            f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      serviceAccountName: {account}
      containers: [{{name: a, image: a, ports: [{{name: {port}, containerPort: 5432}}]}}]
"""
            for namespace, name, account, port in (
                ("front", "web", "web", "http"),
                ("shop", "orders", "default", "http"),
                ("shop", "reports", "default", "http"),
                ("data", "postgres", "postgres", "tcp-sql"),
                ("data", "backup", "backup", "http"),
            )
        ),
        """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: postgres, namespace: data}
spec:
  podSelector: {matchLabels: {app: postgres}}
  ingress:
  - from:
    - namespaceSelector: {matchLabels: {team: shop}}
      podSelector: {matchLabels: {app: orders}}
    - podSelector: {matchLabels: {app: migrate}}
    ports: [{port: 5432}]
""",
        """
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: reports, namespace: shop}
spec:
  selector: {matchLabels: {app: reports}}
  rules:
  - from: [{source: {notNamespaces: [front]}}]
    to: [{operation: {methods: [GET], notPaths: ["/admin*"]}}]
""",
    )
)
UNREADABLE = ("vicinity", "that is refused", "%00", "labels of the source", "·other·", "itself or node", "not (")


def pods(selector: Selector) -> Predicate:
    return Is(SOURCE_LABELS, Labelled(selector))


def namespaces(selector: Selector) -> Predicate:
    return Is(SOURCE_NAMESPACE, Labelled(selector))


def label(**labels: str) -> Selector:
    return Selector.of(labels)


def path(start: str) -> Predicate:
    return Is(PATH, Prefix(start))


GET = Is(METHOD, OneOf(frozenset({"GET"})))
HTTP = Is(APPLICATION, OneOf(frozenset({"http"})))
TOKEN = And((Is(claim("iss"), Present()), Is(claim("sub"), Present())))
NEAR = Is(VICINITY, OneOf(frozenset({"itself", "node"})))
TEXTS: list[tuple[Predicate, str]] = [
    (And((GET, path("/cart"))), "GET /cart*"),
    (And((GET, Not(path("/admin")))), "GET except /admin*"),
    (And((path("/a"), Not(Is(REFUSED_PATH, Present())))), "/a*"),
    (And((Not(path("/a")), Not(path("/b")))), "paths except /a*, /b*"),
    (And((Not(path("/a")), Not(And((GET, path("/b")))))), "requests except /a* and GET /b*"),
    (Or((GET, And((path("/a"), Not(path("/a/b")))))), "GET, or /a* except /a/b*"),
    (Not(Not(path("/a"))), "/a*"),
    (And((HTTP, Not(And((HTTP, Not(path("/a"))))))), "/a*"),
    (Not(And((path("/a"), Not(GET)))), "GET, or paths except /a*"),
    (Not(And((HTTP, GET))), "not GET"),
    (TOKEN, "a valid token"),
    (Not(TOKEN), "no valid token"),
    (Not(And((path("/a"), Not(TOKEN)))), "a valid token, or paths except /a*"),
    (Is(REFUSED_PATH, Present()), "a path that proxies refuse"),
    (Not(Is(FORWARDED_ADDRESS, InNetwork((parse_network("10.0.0.0/8"),)))), "forwarded address not in 10.0.0.0/8"),
    (pods(label(app="orders")), "pods with app=orders"),
    (Not(pods(label(app="orders"))), "pods except app=orders"),
    (And((namespaces(Selector.of({NAME: "data"})), pods(label(app="orders")))), "pods with app=orders in data"),
    (namespaces(Selector.of({NAME: "data"})), "pods in data"),
    (namespaces(label(team="shop")), "namespaces with team=shop"),
    (
        namespaces(Selector.of({}, [Requirement(NAME, Operator.NOT_IN, frozenset({"front"}))])),
        "namespaces except front",
    ),
    (Not(namespaces(Selector.of({NAME: "front"}))), "namespaces except front"),
    (Or((pods(label(app="b")), pods(label(app="a")))), "pods with app=a or app=b"),
    (And((pods(label(app="a")), NEAR)), "pods with app=a and from the pod itself or its node"),  # not a usual request
    (Or((pods(label(app="a")), NEAR)), "pods with app=a"),
    (
        And(
            (
                Is(PACKET_SOURCE, InNetwork((parse_network("10.0.0.0/8"),))),
                Not(Is(PACKET_SOURCE, InNetwork((parse_network("10.1.0.0/16"),)))),
            )
        ),
        "addresses in 10.0.0.0/8 except 10.1.0.0/16",
    ),
    (And((Is(TRANSPORT, OneOf(frozenset({"TCP"}))), Is(PORT, OneOf(frozenset({5432}))))), "port 5432"),
    (Is(PORT, OneOf(frozenset({9187, 80, 10000}))), "port 80, 9187, 10000"),
    (And((Is(TRANSPORT, OneOf(frozenset({"UDP"}))), Is(PORT, OneOf(frozenset({53}))))), "port 53/UDP"),
]


@pytest.mark.parametrize(("predicate", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_a_condition_is_in_the_words_of_policies(predicate: Predicate, text: str) -> None:
    assert condition_text(predicate) == text


def test_the_exact_condition_covers_unusual_requests() -> None:
    predicate = Or((pods(label(app="a")), NEAR))
    assert condition_text(predicate, exact=True) == "pods with app=a or from the pod itself or its node"


def test_a_shortened_condition_counts_the_omitted_parts() -> None:
    apps = Or(tuple(pods(label(app=f"application-{number}")) for number in range(30)))
    text = condition_text(apps)
    assert len(text) < TWO_LINES + len(" or 30 more")
    assert text.startswith("pods with app=application-0 or app=application-1 or ")
    assert text.endswith(" or 25 more")
    assert condition_text(apps, most=None).count("app=") == 30


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return cluster_of(APP)


def described(cluster: Cluster, kind: str, name: str) -> list[str]:
    (found,) = describe(cluster, kind, name, None)
    return found.lines(width=100)


def test_a_pod_under_network_policies_is_described_by_pods_on_one_screen(cluster: Cluster) -> None:
    lines = described(cluster, "pod", "data/postgres")
    assert len(lines) <= 40
    table = [" ".join(line.split()) for line in lines[lines.index("Effective:") + 2 :]]
    assert table == [
        "pods with app=migrate in data 5432 allow NetworkPolicy/data/postgres rule 0",
        "pods with app=orders in shop manifests.yaml:85",
        "anything else deny no rule of NetworkPolicy/data/postgres allows it",
    ]


BOTH = (
    APP.replace("serviceAccountName: default", "serviceAccountName: shop")
    + """
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: reports-of-web, namespace: shop}
spec:
  selector: {matchLabels: {app: reports}}
  rules:
  - from: [{source: {namespaces: [front]}}]
  - to: [{operation: {methods: [GET]}}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: orders, namespace: shop}
spec:
  podSelector: {matchLabels: {app: orders}}
  policyTypes: [Egress]
  egress: [{to: [{namespaceSelector: {matchLabels: {team: data}}}]}]
"""
)


def test_a_pod_under_policies_of_a_mesh_and_of_the_network_is_described_on_one_screen() -> None:
    cluster = cluster_of(BOTH)
    (found,) = describe(cluster, "pod", "shop/reports", None)
    lines = found.lines(width=120)
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 120


def test_callers_with_equal_verdicts_share_a_row_and_all_accounts_of_a_namespace_have_one_name() -> None:
    cluster = cluster_of(BOTH)
    (found,) = describe(cluster, "pod", "shop/reports", None)
    lines = found.lines()
    rules = "AuthorizationPolicy/shop/reports-of-web rule"
    assert [" ".join(line.split()) for line in lines[lines.index("Effective:") + 2 :]] == [
        f"sa:data/* any allow if GET {rules} 1 manifests.yaml:110",
        "no identity deny otherwise no rule allows it at workload/istio sidecar",
        f"sa:front/* any allow {rules} 0 manifests.yaml:109",
        f"sa:shop/shop any allow if GET and pod shop/reports {rules} 1",
        "deny otherwise no rule allows it",
        f"sa:shop/* (others) any allow if GET and pods except app=orders {rules} 1",
        "deny otherwise no rule allows it",
        f"any other identity any allow if from namespace front {rules} 0",
        f"allow if GET {rules} 1",
        "deny otherwise no rule allows it at workload/istio sidecar",
    ]
    cluster.verbose = True
    (exact,) = describe(cluster, "pod", "shop/reports", None)
    assert "sa:data/*" not in exact.lines()[exact.lines().index("Effective:") + 2]


def test_rules_of_network_policies_say_peers_and_ports_once() -> None:
    text = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: many, namespace: data}
spec:
  podSelector: {}
  ingress:
  - from: [{namespaceSelector: {matchLabels: {team: shop}}}, {podSelector: {matchLabels: {app: backup}}}]
    ports: [{port: 5432}]
  - from: [{podSelector: {}}]
    ports: [{port: 53, protocol: UDP}, {port: sql}, {port: 9187}]
  - {}
  egress: []
  policyTypes: [Ingress, Egress]
"""
    (found,) = describe(cluster_of(f"{APP}---{text}"), "networkpolicy", "many", None)
    lines = found.lines()
    assert [" ".join(line.split()[2:-1]) for line in lines[lines.index("Rules:") + 1 : lines.index("Affects:")]] == [
        "ingress: port 5432 and (namespaces with team=shop or pods with app=backup in data)",
        "ingress: pods in data and (port 53/UDP or port 9187, sql)",
        "ingress: anything",
        "egress: nothing is allowed",
    ]


def test_a_layer_that_no_policy_targets_is_for_verbose_descriptions_where_others_have_policies() -> None:
    cluster = cluster_of(APP)
    untargeted = "no policy targets it"
    assert untargeted not in "\n".join(described(cluster, "pod", "data/postgres"))
    assert untargeted in "\n".join(described(cluster, "pod", "data/backup"))
    cluster.verbose = True
    assert untargeted in "\n".join(described(cluster, "pod", "data/postgres"))


def test_a_verbose_description_has_the_exact_table() -> None:
    cluster = cluster_of(APP)
    cluster.verbose = True
    text = " ".join(" ".join(described(cluster, "pod", "data/postgres")).split())
    assert "sa:data/postgres any allow if pod data/postgres and from the pod itself or its" in text


@pytest.mark.parametrize("name", ["data/postgres", "data/backup", "shop/reports", "shop/orders", "front/web"])
def test_no_description_has_words_that_only_eastgate_knows(cluster: Cluster, name: str) -> None:
    text = "\n".join(described(cluster, "pod", name))
    assert [word for word in UNREADABLE if word in text] == []


def test_a_workload_that_accepts_get_is_not_closed(cluster: Cluster) -> None:
    shown = modes(cluster, cluster.authority.world.workloads["shop/reports"])
    assert {str(mode.mode) for mode in shown} >= {"closed", "allow-list"}  # bytes, and HTTP
    assert summary(shown) == "allow-list"


def explained(cluster: Cluster, source: str, port: int, *, verbose: bool = False) -> list[str]:
    decision = cluster.authority.decide(Question.of(source, "pod:data/postgres", port=port))
    return explain(decision, verbose=verbose).splitlines()


def carets(lines: list[str]) -> list[str]:
    return [line.partition("^ ")[2] for line in lines if "^" in line]


def test_an_allowed_connection_has_one_caret_for_each_reason(cluster: Cluster) -> None:
    lines = explained(cluster, "pod:shop/orders", 5432)
    assert lines[0] == "ALLOW  pod:shop/orders -> pod:data/postgres port 5432"
    assert carets(lines) == ["pods with app=orders in namespaces with team=shop", "port 5432"]
    assert lines[-1] == "  network/ingress: allowed by NetworkPolicy/data/postgres rule 0  (manifests.yaml:85)"


def test_stages_and_readings_are_for_verbose_explanations(cluster: Cluster) -> None:
    short, long = (explained(cluster, "pod:shop/orders", 5432, verbose=verbose) for verbose in (False, True))
    assert not any("networkPolicies: enforce" in line or "itself" in line for line in short)
    assert any("networkPolicies: enforce" in line for line in long)
    assert any("itself" in line for line in long)


@pytest.mark.parametrize(
    ("source", "port", "missed", "wanted"),
    [
        ("pod:shop/orders", 80, "the port is 80", ["wants port 5432"]),
        (
            "pod:front/web",
            5432,
            "the caller is a pod with app=web in front",
            ["wants pods with app=orders in namespaces with team=shop", "wants pods with app=migrate in data"],
        ),
        ("ip:192.0.2.1", 5432, "the caller is no pod", ["wants pods with app=orders in namespaces with team=shop"]),
    ],
)
def test_a_denied_connection_shows_the_part_of_the_closest_rule_that_did_not_match(
    cluster: Cluster, source: str, port: int, missed: str, wanted: list[str]
) -> None:
    lines = explained(cluster, source, port)
    assert f"  NetworkPolicy/data/postgres rule 0 missed it: {missed}" in lines
    assert carets(lines)[: len(wanted)] == wanted


MANY = f"""
apiVersion: v1
kind: Pod
metadata: {{name: cart, namespace: shop, labels: {{app: cart}}}}
spec: {{serviceAccountName: cart, containers: [{{name: a, image: a}}]}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: cart, namespace: shop}}
spec:
  podSelector: {{}}
  ingress: [{{from: [{{podSelector: {{matchLabels: {{{", ".join(f"k{number}: v" for number in range(14))}}}}}}}]}}]
"""
CLOSED = """
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio-injection: enabled}}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: closed, namespace: shop}
spec: {}
"""


@pytest.mark.parametrize(
    ("manifests", "source"),
    [(MANY, "sa:elsewhere/x"), (MANY + CLOSED, "sa:shop/x")],
    ids=["no rule is about its namespace", "another layer denies"],
)
def test_a_layer_that_denies_whatever_labels_a_caller_has_answers_for_all_of_them(manifests: str, source: str) -> None:
    authority = cluster_of(manifests).authority
    for question in (Question.of(source, "pod:shop/cart", port=80), Question.of(source, "pod:shop/cart")):
        assert not authority.decide(question).allowed
        answer = answer_question(question, authority)  # as `check`, which covers all requests of the question
        assert (answer.decision.allowed, answer.depends) == (False, None)


def test_labels_that_decide_and_are_too_many_to_look_at_leave_a_question_open() -> None:
    with pytest.raises(QuestionError, match="too many classes of pods"):
        cluster_of(MANY).authority.decide(Question.of("sa:shop/x", "pod:shop/cart", port=80))


HOST = """
apiVersion: v1
kind: Pod
metadata: {name: agent, namespace: shop, labels: {app: agent}}
spec: {hostNetwork: true, containers: [{name: a, image: a}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {containers: [{name: a, image: a}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: agent, namespace: shop}
spec: {podSelector: {matchLabels: {app: agent}}, policyTypes: [Ingress, Egress]}
"""


@pytest.mark.parametrize(("source", "to"), [("web", "agent"), ("agent", "web")])
def test_a_policy_that_cannot_be_about_a_pod_in_its_nodes_network_is_named(source: str, to: str) -> None:
    decision = cluster_of(HOST).authority.decide(Question.of(f"pod:shop/{source}", f"pod:shop/{to}", port=80))
    said = "NetworkPolicy/shop/agent does not apply to pod shop/agent: it uses the node's network (hostNetwork: true)"
    assert decision.allowed
    assert said in decision.reason
    assert "does not apply" in "\n".join(described(cluster_of(HOST), "pod", "shop/agent"))


def test_a_policy_that_allows_at_one_end_and_is_not_about_the_other_says_at_which_end() -> None:
    manifests = HOST.replace("{matchLabels: {app: agent}}", "{}").replace("Egress]}", "Egress], egress: [{}]}")
    decision = cluster_of(manifests).authority.decide(Question.of("pod:shop/web", "pod:shop/agent", port=80))
    beside = "does not apply to pod shop/agent: it uses the node's network (hostNetwork: true)"
    policy = "NetworkPolicy/shop/agent"
    assert decision.reason == f"{policy} rule 0 allows it at pod shop/web; {policy} {beside}"


PEERS = """---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web, namespace: shop}
spec:
  podSelector: {matchLabels: {app: web}}
  ingress: [{from: [{podSelector: {matchLabels: {app: agent}}}], ports: [{port: metrics}]}]
"""


def test_a_rule_that_a_caller_misses_says_that_it_is_in_the_network_of_its_node_and_the_port_by_name() -> None:
    text = HOST.replace("image: a}", "image: a, ports: [{name: http, containerPort: 80}]}") + PEERS
    decision = cluster_of(text).authority.decide(Question.of("pod:shop/agent", "pod:shop/web", port=80))
    explained = explain(decision)
    assert not decision.allowed
    host = "the caller is shop/agent, a pod in the network of its node (hostNetwork)"
    assert f"NetworkPolicy/shop/web rule 0 missed it: {host}; the port is 80 (http)" in explained


REPLICAS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: postgres, namespace: data}
spec:
  selector: {matchLabels: {app: postgres}}
  template: {metadata: {labels: {app: postgres}}, spec: {containers: [{name: c, ports: [{containerPort: 5432}]}]}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed, namespace: data}
spec: {podSelector: {}}
"""


def test_a_call_between_replicas_that_may_be_one_pod_is_explained_in_plain_words() -> None:
    decision = cluster_of(REPLICAS).authority.decide(Question.of("pod:data/postgres", "pod:data/postgres", port=5432))
    assert decision.reason == "no rule allows it at data/postgres; unknown: whether the pod calls itself"
    assert not any(word in explain(decision) for word in UNREADABLE)
