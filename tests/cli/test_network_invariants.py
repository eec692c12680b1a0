"""Invariants of a team with network policies: callers by labels, with and without existing workloads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Cli = Callable[..., Result]

WORKLOADS = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: shop}}
---
apiVersion: v1
kind: Namespace
metadata: {name: data, labels: {team: data}}
"""
POLICIES = """\
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: default-deny, namespace: data}
spec: {podSelector: {}, policyTypes: [Ingress]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: postgres, namespace: data}
spec:
  podSelector: {matchLabels: {app: postgres}}
  policyTypes: [Ingress]
  ingress:
  - from:
    - namespaceSelector: {matchLabels: {team: shop}}
      podSelector: {matchLabels: {app: orders-api}}
    ports: [{port: 5432}]
"""
TWO_PEERS = POLICIES.replace("      podSelector", "    - podSelector")
LABELS = "{pods: {matchLabels: {app: orders-api}}, namespaces: {matchLabels: {team: shop}}}"
ACCOUNT = "{serviceAccounts: [shop/orders-api]}"


def deployment(namespace: str, name: str, account: str, port: int) -> str:
    return f"""\
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      serviceAccountName: {account}
      containers: [{{name: {name}, image: {name}, ports: [{{containerPort: {port}}}]}}]
"""


def write(policies: str = POLICIES, *, accounts: bool = True, more: str = "") -> None:
    pods = [("shop", "orders-api", 8080), ("shop", "payments", 9090), ("data", "postgres", 5432), ("data", "backup", 1)]
    deployments = (deployment(home, name, name if accounts else "default", port) for home, name, port in pods)
    Path("m.yaml").write_text(WORKLOADS + "".join(deployments) + policies + more)


def state(
    callers: str = LABELS,
    *,
    mode: str = "only",
    more: str = "",
    within: str = "",
    to: str = "{matchLabels: {app: postgres}}",
) -> None:
    Path("i.yaml").write_text(
        f"""\
apiVersion: eastgate.dev/v1alpha1
kind: Invariant
metadata: {{name: postgres}}
spec:
  manifests: [m.yaml]
  {more}
  {mode}:
    from: {callers}
    to: {{pods: {to}, namespaces: {{matchLabels: {{kubernetes.io/metadata.name: data}}}}}}
    ports: [5432]
    {within}
"""
    )


def counterexample(cli: Cli) -> dict[str, object]:
    (result,) = json.loads(cli("test", "i.yaml", "-o", "json").stdout)["results"]
    example = result["statement"]["counterexample"]
    assert isinstance(example, dict), result
    return example


@pytest.mark.parametrize("accounts", [True, False], ids=["accounts", "one-account"])
@pytest.mark.parametrize("more", ["", "existingOnly: true"])
def test_only_orders_api_reaches_postgres(cli: Cli, accounts: bool, more: str) -> None:
    state(LABELS, more=more)
    write(accounts=accounts)
    assert cli("test", "i.yaml").exit_code == 0
    write(TWO_PEERS, accounts=accounts)
    result = cli("test", "i.yaml")
    assert result.exit_code == 1
    command = "eastgate explain -f m.yaml --from pod:shop/payments --to pod:data/postgres --port 5432\n"
    assert command in result.stdout


PEER = "{namespaceSelector: {matchLabels: {team: shop}}, podSelector: {matchLabels: {app: orders-api}}}"
ANY_POD = "{namespaceSelector: {matchLabels: {team: shop}}, podSelector: {}}"
ANY_NAMESPACE = "{namespaceSelector: {}, podSelector: {}}"


def ingress(peers: str, ports: str = "[{port: 5432}]", direction: str = "Ingress", app: str = "postgres") -> str:
    return f"""\
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: p{len(peers)}-{len(ports)}, namespace: data}}
spec:
  podSelector: {{matchLabels: {{app: {app}}}}}
  policyTypes: [{direction}]
  ingress: [{{from: [{peers}], ports: {ports}}}]
"""


SILENT_PAYMENTS = """\
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: payments, namespace: shop}
spec: {podSelector: {matchLabels: {app: payments}}, policyTypes: [Egress]}
"""


@pytest.mark.parametrize("accounts", [True, False], ids=["accounts", "one-account"])
@pytest.mark.parametrize(
    ("policies", "witness"),
    [
        pytest.param(ingress(PEER), None, id="right"),
        pytest.param(ingress(PEER).replace("  policyTypes: [Ingress]\n", ""), None, id="right-without-types"),
        pytest.param(ingress(ANY_POD) + SILENT_PAYMENTS, None, id="right-by-egress-of-the-others"),
        pytest.param(ingress(PEER) + ingress(ANY_NAMESPACE, "[{port: 9187}]"), None, id="right-but-for-another-port"),
        pytest.param(
            ingress(PEER) + ingress(ANY_NAMESPACE, "[{port: 5432, protocol: UDP}]"), None, id="right-but-for-udp"
        ),
        pytest.param("", "pod:data/backup", id="no-policy"),
        pytest.param(SILENT_PAYMENTS, "pod:data/backup", id="only-egress-of-another"),
        pytest.param(ingress(ANY_POD), "pod:shop/payments", id="too-wide-a-pod-selector"),
        pytest.param(ingress(PEER.replace(", podSelector", "}, {podSelector")), "pod:shop/payments", id="two-entries"),
        pytest.param(ingress(ANY_NAMESPACE), "pod:data/backup", id="every-namespace"),
        pytest.param(ingress(PEER, direction="Egress"), "pod:data/backup", id="types-without-ingress"),
        pytest.param(ingress(PEER, app="postgresql"), "pod:data/backup", id="misspelt-selector"),
        pytest.param(
            ingress(PEER) + ingress(ANY_POD, "[{port: 5000, endPort: 6000}]"), "pod:shop/payments", id="range-of-ports"
        ),
        pytest.param(
            ingress(f"{PEER}, {{ipBlock: {{cidr: 203.0.113.0/24}}}}"), "anonymous", id="addresses-outside-the-cluster"
        ),
    ],
)
def test_only_orders_api_reaches_postgres_by_what_policies_say(
    cli: Cli, accounts: bool, policies: str, witness: str | None
) -> None:
    write(policies, accounts=accounts)
    state(LABELS, more="existingOnly: true")
    result = cli("test", "i.yaml")
    if witness is None:
        assert (result.exit_code, result.stdout) == (0, "1 passed, 0 failed\n")
        return
    assert result.exit_code == 1
    command = next(line for line in result.stdout.splitlines() if "eastgate explain" in line)
    assert f"--from {witness} --to pod:data/postgres --port 5432" in command
    assert "--method" not in command


def test_another_replica_is_the_example_only_where_there_is_no_other_caller(cli: Cli) -> None:
    write(ingress(f"{PEER}, {{podSelector: {{matchLabels: {{app: postgres}}}}}}"))
    state(LABELS)
    assert "--from sa:data/postgres --to pod:data/postgres " in cli("test", "i.yaml").stdout
    write("")
    assert "--from pod:data/backup " in cli("test", "i.yaml").stdout


def test_accounts_and_labels_name_the_same_pods(cli: Cli) -> None:
    state(ACCOUNT)
    write()
    assert cli("test", "i.yaml").exit_code == 0
    state(f"{{except: {LABELS}}}", mode="never")
    assert cli("test", "i.yaml").exit_code == 0
    state(LABELS, mode="always")
    assert cli("test", "i.yaml").exit_code == 0


def test_pods_alone_are_those_of_every_namespace(cli: Cli) -> None:
    state("{pods: {matchLabels: {app: orders-api}}}")
    write()
    assert cli("test", "i.yaml").exit_code == 0
    state("{pods: {matchLabels: {app: orders-api}}, namespaces: {matchLabels: {team: data}}}")
    assert counterexample(cli)["arguments"] == [
        "--from",
        "pod:shop/orders-api",
        "--to",
        "pod:data/postgres",
        "--port",
        "5432",
    ]


def test_an_account_without_pods_counts_only_where_something_names_it(cli: Cli) -> None:
    unused = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: unused, namespace: shop}\n"
    only_team = POLICIES.replace("      podSelector: {matchLabels: {app: orders-api}}\n", "")
    state("{pods: {matchExpressions: [{key: app, operator: In, values: [orders-api, payments]}]}}")
    write(only_team, more=unused)
    assert cli("test", "i.yaml").exit_code == 0
    state("{serviceAccounts: [shop/unused]}", mode="never")
    assert "--from sa:shop/unused " in cli("test", "i.yaml").stdout


def test_a_pod_that_does_not_exist_yet_breaks_a_statement_only_if_asked_for(cli: Cli) -> None:
    write()
    state(ACCOUNT, more="includeFuture: true")
    result = cli("test", "i.yaml")
    assert result.exit_code == 1
    assert (
        "the caller does not exist yet (includeFuture: true): a pod with app=orders-api in namespace shop"
        in result.stdout
    )
    example = counterexample(cli)
    assert example["exists"] is False
    assert [each["kind"] for each in example["objects"]] == ["Pod"]  # type: ignore[attr-defined]


def test_a_namespace_that_does_not_exist_yet_may_have_the_labels_that_a_policy_asks_for(cli: Cli) -> None:
    write()
    home = "{pods: {matchLabels: {app: orders-api}}, namespaces: {matchLabels: {kubernetes.io/metadata.name: shop}}}"
    state(home)
    assert cli("test", "i.yaml").exit_code == 0
    state(home, more="includeFuture: true")
    result = cli("test", "i.yaml").stdout
    assert "a pod with app=orders-api in a new namespace with team=shop" in result
    state(LABELS, more="includeFuture: true")
    assert cli("test", "i.yaml").exit_code == 0


def test_a_pod_reaches_itself_and_its_node_reaches_it_unless_asked_for(cli: Cli) -> None:
    pod = (
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: single, namespace: data, labels: {app: single}}\n"
        "spec: {serviceAccountName: single}\nstatus: {hostIP: 192.0.2.1}\n"
    )
    write(more=pod)
    state("{anonymous: true, except: {anonymous: true}}", to="{matchLabels: {app: single}}")
    assert cli("test", "i.yaml").exit_code == 0
    state("{anonymous: true, except: {anonymous: true}}", to="{matchLabels: {app: single}}", within="includeSelf: true")
    assert cli("test", "i.yaml").exit_code == 1
    state("{pods: {matchLabels: {app: single}}}", to="{matchLabels: {app: single}}", within="includeSelf: true")
    assert "--to pod:data/single --port 5432 --source-ip 192.0.2.1\n" in cli("test", "i.yaml").stdout


def test_a_witness_of_a_tcp_port_is_a_connection(cli: Cli) -> None:
    denied = """\
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: no-get, namespace: data}
spec:
  selector: {matchLabels: {app: postgres}}
  action: DENY
  rules: [{to: [{operation: {methods: [GET]}}]}]
"""
    write(TWO_PEERS, more=denied)
    state(more="settings: {istioDataPlane: sidecar}")
    example = counterexample(cli)
    assert "stranger" not in str(example["arguments"])


@pytest.mark.parametrize(
    ("callers", "warning"),
    [
        ("{pods: {matchLabels: {app: paymentz}}}", "no workload that exists has the labels {app: paymentz}"),
        ("{namespaces: {matchLabels: {team: shpo}}}", "no namespace that exists has the labels {team: shpo}"),
        (
            "{any: true, except: {pods: {matchLabels: {app: orders}}}}",
            "no workload that exists has the labels {app: orders}",
        ),
    ],
)
def test_a_selector_of_callers_that_selects_nothing_is_warned_of(cli: Cli, callers: str, warning: str) -> None:
    write()
    state(callers, mode="never")
    assert f"warning[EG0319]: {warning}\n" in cli("test", "i.yaml").stderr
