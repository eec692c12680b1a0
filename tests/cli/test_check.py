"""The contract of `check` and `explain`: words, exit statuses, JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

POLICY = """\
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: allow-a, namespace: default}
spec:
  targetRefs:
  - kind: Pod
    selector: {}
  action: ALLOW
  rules:
  - authorizationSource: {serviceAccounts: [a]}
    networkAttributes: {ports: [80]}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default}
---
apiVersion: v1
kind: Service
metadata: {name: s, namespace: default}
spec: {selector: {app: none}, ports: [{port: 80}]}
"""

KEYS = {"verdict", "layer", "stage", "policy", "rule", "status", "file", "line", "reason", "trace"}


def test_allowed_exits_with_0_and_names_policy_and_line(cli: Cli, shop: str) -> None:
    result = cli("check", "-f", shop, "--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8080")
    assert result.exit_code == 0
    assert result.stdout == (
        f"ALLOW  AuthorizationPolicy/shop/cart-from-web rule 0 allows it  ({shop}/policies.yaml:11)\n"
    )


def test_denied_exits_with_1(cli: Cli, shop: str) -> None:
    result = cli("check", "-f", shop, "--from", "anonymous", "--to", "pod:shop/cart", "--port", "8080")
    assert result.exit_code == 1
    assert result.stdout == "DENY  no rule allows it at shop/cart\n"


def test_json_of_an_allow(cli: Cli, shop: str) -> None:
    result = cli("check", "-f", shop, "--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8080", "-o", "json")
    answer = json.loads(result.stdout)
    assert answer.keys() >= KEYS
    assert (answer["verdict"], answer["status"]) == ("allow", 200)
    assert (answer["layer"], answer["stage"]) == ("workload/network", "allow")
    assert (answer["policy"], answer["rule"]) == ("AuthorizationPolicy/shop/cart-from-web", 0)
    assert (answer["file"], answer["line"]) == (f"{shop}/policies.yaml", 11)


def test_json_of_a_denial_by_default(cli: Cli, shop: str) -> None:
    result = cli("check", "-f", shop, "--from", "anonymous", "--to", "pod:shop/cart", "--port", "8080", "-o", "json")
    answer = json.loads(result.stdout)
    assert answer.keys() >= KEYS
    assert (answer["verdict"], answer["status"], answer["policy"], answer["rule"]) == ("deny", 0, None, None)
    assert (answer["file"], answer["line"]) == (None, None)
    nearest = answer["trace"][0]["nearest"][0]
    assert nearest["missed"][0]["attribute"] == "identity"
    assert nearest["missed"][0]["actual"] == "absent"


def test_an_http_denial_is_403_and_a_refused_path_400(cli: Cli, shop: str) -> None:
    to_payments = ("-f", shop, "--from", "sa:shop/cart", "--to", "pod:shop/payments", "--port", "8443", "-o", "json")
    denied = json.loads(cli("check", *to_payments, "--method", "DELETE", "--path", "/v1/charges/1").stdout)
    assert denied["status"] == 403
    refused = json.loads(cli("check", *to_payments, "--method", "GET", "--path", "/v1/charges/%2e%2fadmin").stdout)
    assert (refused["verdict"], refused["status"]) == ("deny", 400)


def test_a_cluster_policy_is_named_without_namespace(cli: Cli, shop: str) -> None:
    words = ("--from", "sa:monitoring/prometheus", "--to", "pod:shop/cart", "--port", "9090", "-o", "json")
    assert json.loads(cli("check", "-f", shop, *words).stdout)["policy"] == "ClusterAuthorizationPolicy/metrics"


def test_manifests_from_standard_input(cli: Cli) -> None:
    words = ("check", "-f", "-", "--from", "sa:default/a", "--to", "pod:default/p", "--port", "80")
    assert cli(*words, stdin=POLICY).exit_code == 0


def test_paths_may_follow_each_other(cli: Cli, tmp_path: Path) -> None:
    policy, pod = POLICY.split("---\n", 1)
    Path("policy.yaml").write_text(policy)
    Path("pod.yaml").write_text(pod)
    words = ("--from", "sa:default/a", "--to", "pod:default/p", "--port", "80")
    assert cli("check", "-f", "policy.yaml", "pod.yaml", *words).exit_code == 0
    assert cli("check", "-f", "policy.yaml", "-f", "pod.yaml", *words).exit_code == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--from", "nobody", "--to", "pod:default/p"), "EG0101"),
        (("--from", "spiffe://td/ns/a/sa/*", "--to", "pod:default/p"), "EG0101"),
        (("--from", "sa:default/*", "--to", "pod:default/p"), "EG0101"),
        (("--from", "sa:default", "--to", "pod:default/p"), "write sa:<namespace>/<name>"),
        (("--from", "anonymous", "--to", "cat:default/p"), "EG0102"),
        (("--from", "anonymous", "--to", "pod:default/q"), "EG0103"),
        (("--from", "anonymous", "--to", "service:default/t"), "did you mean default/s?"),
        (("--from", "anonymous", "--to", "service:default/s"), "selects no pods"),
        (("--from", "anonymous", "--to", "pod:default/p", "--port", "0"), "EG0105"),
        (("--from", "anonymous", "--to", "pod:default/p", "--path", "x"), "write /x"),
        (("--from", "ip:10.0.0.256", "--to", "pod:default/p"), "is not an IP address"),
        (("--from", "anonymous", "--to", "gateway:default/g"), "no manifest declares Gateway default/g"),
        (("--from", "anonymous", "--to", "route:default/r"), "EG0103"),
        (("--from", "anonymous", "--to", "pod:default/p", "--set", "denyOnly=maybe"), "EG0001"),
        (("--from", "anonymous", "--to", "pod:default/p", "--set", "denyonly=allow"), "did you mean `denyOnly`?"),
        (("--from", "anonymous", "--to", "pod:default/p", "--set", "serviceTarget=traffic"), "needs meshMode: ambient"),
        (("--from", "anonymous", "--to", "pod:default/p", "--header", "x"), "write --header key=value"),
    ],
)
def test_an_undecidable_question_exits_with_2_and_a_reason(cli: Cli, words: tuple[str, ...], says: str) -> None:
    Path("m.yaml").write_text(POLICY)
    result = cli("check", "-f", "m.yaml", *words)
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stdout == ""


def test_errors_of_all_documents_come_at_once_in_text_and_in_json(cli: Cli) -> None:
    broken = POLICY.replace("action: ALLOW", "action: Allow") + "---\nkind: Pod\n---\napiVersion: v1\nkind: Pod\n"
    Path("m.yaml").write_text(broken)
    words = ("check", "--strict", "-f", "m.yaml", "--from", "anonymous", "--to", "pod:default/p")
    result = cli(*words)
    assert result.exit_code == 2
    assert "m.yaml:8:11" in result.stderr
    assert "did you mean `ALLOW`?" in result.stderr
    assert "4 errors: could not decide" in result.stderr
    answer = json.loads(cli(*words, "-o", "json").stdout)
    assert answer["verdict"] is None
    assert [d["line"] for d in answer["diagnostics"]] == [8, 22, 22, 24]


def test_a_closing_policy_is_named_and_other_policies_are_left_out(cli: Cli) -> None:
    broken = POLICY.replace("action: ALLOW", "action: Allow") + "---\nkind: Pod\n---\napiVersion: v1\nkind: Pod\n"
    Path("m.yaml").write_text(broken)
    words = ("check", "-f", "m.yaml", "--from", "anonymous", "--to", "pod:default/p")
    result = cli(*words)
    assert result.exit_code == 2
    assert "did you mean `ALLOW`?" in result.stderr
    assert "left out: a document (m.yaml:22): this object has no `apiVersion` and 2 more errors" in result.stderr
    answer = json.loads(cli(*words, "-o", "json").stdout)
    assert [d["code"] for d in answer["diagnostics"]] == ["EG0120", "EG2013"]
    assert [part["where"] for part in answer["leftOut"]] == ["m.yaml:22"]


def test_settings_come_from_eastgate_yaml_and_the_command_line_wins(cli: Cli) -> None:
    Path("m.yaml").write_text(POLICY.replace("action: ALLOW", "action: DENY"))
    words = ("check", "-f", "m.yaml", "--from", "sa:default/b", "--to", "pod:default/p", "--port", "80")
    assert cli(*words).exit_code == 1
    Path("eastgate.yaml").write_text("settings: {denyOnly: allow}\n")
    assert cli(*words).exit_code == 0
    assert cli(*words, "--set", "denyOnly=deny").exit_code == 1


def test_a_broken_eastgate_yaml_is_an_error_with_its_line(cli: Cli) -> None:
    Path("m.yaml").write_text(POLICY)
    Path("eastgate.yaml").write_text("setings: {denyOnly: allow}\n")
    result = cli("check", "-f", "m.yaml", "--from", "anonymous", "--to", "pod:default/p")
    assert result.exit_code == 2
    assert "eastgate.yaml:1:1" in result.stderr
    assert "did you mean `settings`?" in result.stderr


def test_no_manifests_is_an_error(cli: Cli) -> None:
    assert cli("check", "--from", "anonymous", "--to", "pod:default/p").exit_code == 2
    assert cli("check", "-f", "missing.yaml", "--from", "anonymous", "--to", "pod:default/p").exit_code == 2


def test_verbose_counts_what_was_left_aside(cli: Cli) -> None:
    Path("m.yaml").write_text(POLICY + "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\n")
    result = cli("check", "-v", "-f", "m.yaml", "--from", "anonymous", "--to", "pod:default/p")
    assert "read 2 objects and 1 policies; left aside 1" in result.stderr


DECIDED = """\
DENY  sa:sandbox/x -> pod:shop/cart port 8080
  AuthorizationPolicy/shop/no-sandbox rule 0 denies it

AuthorizationPolicy/shop/no-sandbox rule 0 denies:
  --> {shop}/policies.yaml:66:5
   |
67 |       serviceAccounts: [sandbox/*]
   |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ identity

at shop/cart:
"""
LAYER = "  workload/network: denied by AuthorizationPolicy/shop/no-sandbox rule 0  ({shop}/policies.yaml:66)\n"
STAGES = """\
  workload/network: denied
    admin     no match (1 rule)
    deny      denied by AuthorizationPolicy/shop/no-sandbox rule 0
"""


@pytest.mark.parametrize(("options", "layers"), [((), LAYER), (("-v",), STAGES)], ids=["in one glance", "verbose"])
def test_explain_puts_a_caret_under_what_decided_and_shows_the_layers(
    cli: Cli, shop: str, options: tuple[str, ...], layers: str
) -> None:
    words = ("--from", "sa:sandbox/x", "--to", "pod:shop/cart", "--port", "8080")
    result = cli("explain", "-f", shop, *words, *options)
    assert result.exit_code == 1
    assert result.stdout == (DECIDED + layers).format(shop=shop)


def test_explain_of_a_default_denial_lists_the_closest_rules_and_what_each_missed(cli: Cli, shop: str) -> None:
    result = cli("explain", "-f", shop, "--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8081")
    assert "AuthorizationPolicy/shop/cart-from-web rule 0 missed it: port is 8081" in result.stdout
    assert "^^^^^^ wants 8080" in result.stdout


def test_explain_names_unknown_attributes_and_gives_an_example(cli: Cli, shop: str) -> None:
    result = cli("explain", "-f", shop, "--from", "sa:shop/web", "--to", "pod:shop/cart")
    assert result.exit_code == 1
    assert result.stdout.startswith("DEPENDS  sa:shop/web -> pod:shop/cart\n  allowed for port 8080; denied otherwise")
    assert "unknown port: for example 1" in result.stdout
    assert "AuthorizationPolicy/shop/cart-from-web rule 0 would allow it with --port 8080:" in result.stdout
    assert result.stdout.count(" ^") == 1


def test_explain_shows_what_an_audit_policy_would_do(cli: Cli, shop: str) -> None:
    result = cli("explain", "-f", shop, "--from", "sa:shop/cart", "--to", "pod:shop/web", "--port", "8080")
    assert result.exit_code == 0
    assert "audit     AuthorizationPolicy/shop/web-from-mesh-only rule 0 would ALLOW" in result.stdout


def test_explain_names_the_reading_that_decided(cli: Cli) -> None:
    Path("m.yaml").write_text(POLICY.replace("action: ALLOW", "action: DENY"))
    words = ("explain", "-v", "-f", "m.yaml", "--from", "sa:default/b", "--to", "pod:default/p", "--port", "80")
    assert "reading denyOnly: deny" in cli(*words).stdout
    assert "reading denyOnly: allow" in cli(*words, "--set", "denyOnly=allow").stdout


def test_explain_json_has_the_answer_and_the_text(cli: Cli, shop: str) -> None:
    words = ("--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8080", "-o", "json")
    answer = json.loads(cli("explain", "-f", shop, *words).stdout)
    assert answer.keys() >= KEYS | {"explanation"}
    assert answer["explanation"].startswith("ALLOW")


@pytest.mark.parametrize("command", ["check", "explain"])
def test_a_misspelt_name_is_warned_of_and_with_strict_an_error(cli: Cli, shop: str, command: str) -> None:
    words = (command, "-f", shop, "--from", "sa:shop/wbe", "--to", "pod:shop/cart", "--port", "8080")
    result = cli(*words, "--method", "get")
    assert result.exit_code == 1
    assert "warning[EG0130]: no manifest and no policy has the service account `wbe`" in result.stderr
    assert "help: did you mean sa:shop/web?" in result.stderr
    assert "warning[EG0131]" in result.stderr
    data = json.loads(cli(*words, "-o", "json").stdout)
    assert (data["verdict"], [one["code"] for one in data["warnings"]]) == ("deny", ["EG0130"])
    strict = cli(*words, "--strict")
    assert (strict.exit_code, strict.stdout) == (2, "")
    assert "error[EG0130]" in strict.stderr
    assert cli(command, "-f", shop, "--from", "sa:shop/web", "--to", "pod:shop/cart", "--strict").exit_code == 1
