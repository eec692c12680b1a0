"""`eastgate get`: rows for people and scripts, and manifests as they were written."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from eastgate import dialects
from eastgate.reading.manifests import read_text
from eastgate.reports.get import listing
from eastgate.reports.get.manifests import BadSelector, age_of, parse_selector
from tests.cli.conftest import SHOP, Cli
from tests.dialects.linkerd.cluster import ON_ROUTE, gateway_route, pod, policy, route, server
from tests.reports.world import example

POLICIES = str(SHOP / "policies.yaml")


def test_policies_say_what_they_affect(cli: Cli, shop: str) -> None:
    lines = cli("get", "policies", "-A", "-f", shop).stdout.splitlines()
    assert lines[0].split() == ["NAMESPACE", "NAME", "KIND", "TARGET", "ACTION", "RULES", "AFFECTS", "ACCEPTED"]
    (row,) = [line.split() for line in lines if "payments-api" in line]
    assert " ".join(row) == "shop payments-api AuthorizationPolicy Pod/{app: payments} ALLOW 2 1 True"
    assert "\033" not in "".join(lines)


@pytest.mark.parametrize(
    ("kind", "headers"),
    [
        ("workloads", "NAMESPACE NAME KIND SERVICEACCOUNT PORTS POLICIES MODE"),
        ("pods", "NAMESPACE NAME KIND SERVICEACCOUNT PORTS POLICIES MODE"),
        ("svc", "NAMESPACE NAME TYPE PORTS PODS MODE"),
        ("Namespaces", "NAME WORKLOADS OPEN POLICIES"),
        ("ServiceAccount", "NAMESPACE NAME KIND"),
        ("clusterauthorizationpolicies", "NAMESPACE NAME KIND TARGET ACTION RULES AFFECTS ACCEPTED"),
    ],
)
def test_each_kind_has_its_columns(cli: Cli, shop: str, kind: str, headers: str) -> None:
    result = cli("get", kind, "-f", shop)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == headers.split()
    bare = cli("get", kind, "-f", shop, "--no-headers").stdout.splitlines()
    assert bare == lines[1:]
    assert len(cli("get", kind, "-f", shop, "-o", "wide").stdout.splitlines()) == len(lines)


def test_gateways_routes_and_backends(cli: Cli) -> None:
    payment = str(SHOP.parents[1] / "payment" / "manifests")
    assert "prod-gateway   agentic   HTTPS:443   1        4" in cli("get", "gw", "-f", payment).stdout
    assert "Gateway/prod-gateway" in cli("get", "routes", "-f", payment).stdout
    assert "Service/payments" in cli("get", "backends", "-f", payment).stdout


def test_routes_of_two_groups_with_one_name_are_two(cli: Cli, tmp_path: Path) -> None:
    both = route("api", "/linkerd") + gateway_route("api", "/gateway")
    (tmp_path / "m.yaml").write_text(pod() + server() + both + policy("p", ON_ROUTE))
    data = json.loads(cli("get", "routes", "-o", "json", "-f", str(tmp_path)).stdout)
    written = {one["apiVersion"]: one["spec"]["rules"][0]["matches"][0]["path"]["value"] for one in data["items"]}
    assert written == {"policy.linkerd.io/v1beta3": "/linkerd", "gateway.networking.k8s.io/v1": "/gateway"}
    lines = cli("get", "routes", "--no-headers", "-f", str(tmp_path)).stdout.splitlines()
    assert sorted(line.split()[-1] for line in lines) == ["0", "1"]


def test_json_is_a_list_of_the_manifests_as_written(cli: Cli) -> None:
    written = [one for one in yaml.safe_load_all(Path(POLICIES).read_text("utf-8")) if one]
    data = json.loads(cli("get", "authorizationPolicy", "-o", "json", "-f", POLICIES).stdout)
    assert (data["apiVersion"], data["kind"]) == ("v1", "List")
    assert sorted(data["items"], key=str) == sorted(written, key=str)
    assert yaml.safe_load(cli("get", "authorizationPolicy", "-o", "yaml", "-f", POLICIES).stdout) == data
    one = json.loads(cli("get", "authorizationPolicy", "no-sandbox", "-o", "json", "-f", POLICIES).stdout)
    assert one["metadata"]["name"] == "no-sandbox"


def test_names_namespaces_and_labels_choose(cli: Cli, shop: str) -> None:
    assert cli("get", "pods", "-f", shop, "-o", "name").stdout.split() == [
        "deployment.apps/prometheus",
        "deployment.apps/experiments",
        "deployment.apps/cart",
        "statefulset.apps/payments",
        "deployment.apps/web",
    ]
    assert len(cli("get", "pods", "-f", shop, "-n", "shop", "--no-headers").stdout.splitlines()) == 3
    back = cli("get", "pods", "-f", shop, "-l", "tier in (back),app!=cart", "--no-headers").stdout
    assert [line.split()[1] for line in back.splitlines()] == ["payments"]
    assert cli("get", "policies", "no-sandbox", "-f", shop, "--no-headers").stdout.count("\n") == 1
    assert cli("get", "policy/no-sandbox", "-f", shop).exit_code == 0


def test_a_missing_object_is_reported_on_standard_error(cli: Cli, shop: str) -> None:
    nothing = cli("get", "gateways", "-f", shop)
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "no gateways found" in nothing.stderr
    assert cli("get", "pods", "nobody", "-f", shop).exit_code == 2
    assert "did you mean" in cli("get", "polices", "-f", shop).stderr
    assert cli("get", "pods", "-l", "a==b==c", "-f", shop).exit_code == 2
    assert cli("get", "secrets", "-f", shop).exit_code == 0


def test_what_stands_in_a_secret_is_not_shown(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "secret.yaml"
    path.write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {api_key: hunter2}\n", "utf-8")
    for output in ("json", "yaml", "wide"):
        assert "hunter2" not in cli("get", "secrets", "-o", output, "-f", str(path)).output


NOW = datetime(2025, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("created", "age"),
    [
        ("2024-12-31T23:59:30Z", "30s"),
        ("2024-12-31T23:55:30Z", "4m30s"),
        ("2024-12-31T23:00:00Z", "60m"),
        ("2024-12-31T20:30:00Z", "3h30m"),
        ("2024-12-30T12:00:00Z", "36h"),
        ("2024-12-29T00:00:00Z", "3d"),
        ("2024-06-01T00:00:00Z", "214d"),
        ("2022-01-01T00:00:00Z", "3y1d"),
        ("2001-01-01T00:00:00+01:00", "24y"),
        ("soon", "<unknown>"),
        ("2026-01-01T00:00:00Z", "<unknown>"),
    ],
)
def test_ages_have_the_form_of_kubectl(created: str, age: str) -> None:
    text = f'{{apiVersion: v1, kind: Service, metadata: {{name: s, creationTimestamp: "{created}"}}}}'
    (document,) = read_text("s.yaml", text, positioned=dialects.reads).documents
    assert age_of(document, NOW) == age


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a==b,c", {"a": "b"}, False),
        ("a!=b", {}, True),
        ("a in (b, c)", {"a": "c"}, True),
        ("a notin (b),!d", {"a": "b"}, False),
        ("!a", {}, True),
    ],
)
def test_label_selectors_of_the_command_line(selector: str, labels: dict[str, str], selected: bool) -> None:
    assert parse_selector(selector).matches(labels) is selected


@pytest.mark.parametrize("written", ["a=b=c", "a in b", "a b", "=", "a,,b"])
def test_what_is_no_selector_is_refused(written: str) -> None:
    with pytest.raises(BadSelector):
        parse_selector(written)


def test_age_is_a_column_where_something_has_one(cli: Cli, tmp_path: Path) -> None:
    pods = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, creationTimestamp: '2020-01-01T00:00:00Z'}\n"
    (tmp_path / "m.yaml").write_text(pods)
    assert cli("get", "pods", "-f", "m.yaml").stdout.splitlines()[0].split()[-1] == "AGE"
    (tmp_path / "m.yaml").write_text(pods + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\n")
    assert "<unknown>" in cli("get", "pods", "-f", "m.yaml").stdout
    assert "AGE" not in cli("get", "policies", "-f", str(SHOP)).stdout


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("kind", ["policies", "pods", "namespaces", "svc"])
def test_rows_fit_a_terminal_and_names_stay_whole(kind: str, width: int) -> None:
    listed = listing(example("shop"), kind)
    lines = listed.text(width=width)
    assert max(map(len, lines)) <= width
    assert len(lines) == len(listed.rows) + 1
    assert all(row.name in line for row, line in zip(listed.rows, lines[1:], strict=True))


def test_actions_have_colors_where_they_are_wanted(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("get", "policies", "-f", str(SHOP))
    assert "\033" not in cli(*words).stdout
    monkeypatch.delenv("NO_COLOR")
    assert "\033" not in cli(*words).stdout  # a pipe
    monkeypatch.setenv("FORCE_COLOR", "1")
    output = cli(*words).stdout
    assert "   \033[31mDENY\033[0m     1 " in output
    assert "   \033[32mALLOW\033[0m    1 " in output
