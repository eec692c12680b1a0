"""The contract of `test`: tables in, one closing line out."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_check import POLICY

TABLE = """\
apiVersion: eastgate.dev/v1alpha1
kind: DecisionTest
metadata: {name: t}
spec:
  manifests: [m.yaml]
  cases:
  - {name: a gets in, from: sa:default/a, to: pod:default/p, port: 80, expect: allow,
     by: AuthorizationPolicy/default/allow-a}
  - {name: b does not, from: sa:default/b, to: pod:default/p, port: 80, expect: deny, by: none}
"""


@pytest.fixture(autouse=True)
def files(cli: Cli) -> None:
    Path("m.yaml").write_text(POLICY)
    Path("t.yaml").write_text(TABLE)


def test_all_as_expected_exits_with_0_and_counts(cli: Cli) -> None:
    result = cli("test", "t.yaml")
    assert (result.exit_code, result.stdout) == (0, "2 passed, 0 failed\n")


def test_a_folder_is_searched_for_tables(cli: Cli) -> None:
    assert cli("test", ".").stdout == "2 passed, 0 failed\n"


def test_several_tables_in_one_file(cli: Cli) -> None:
    Path("t.yaml").write_text(TABLE + "---\n" + TABLE.replace("name: t", "name: u"))
    assert cli("test", "t.yaml").stdout == "4 passed, 0 failed\n"


def test_a_wrong_verdict_fails_with_line_and_reason(cli: Cli) -> None:
    Path("t.yaml").write_text(TABLE.replace("expect: deny", "expect: allow"))
    result = cli("test", "t.yaml")
    assert result.exit_code == 1
    assert result.stdout.startswith(
        "FAIL t.yaml:9 t: b does not\n"
        "     expected allow, got deny: no rule allows it at default/p\n"
        "     eastgate explain -f m.yaml --from sa:default/b --to pod:default/p --port 80\n"
        "     closest rule:\n"
    )
    assert "--> m.yaml:10:26\n" in result.stdout
    assert result.stdout.endswith("\n1 passed, 1 failed\n")


@pytest.mark.parametrize("by", ["AuthorizationPolicy/default/other", "none", "allow-a"])
def test_the_wrong_decider_fails(cli: Cli, by: str) -> None:
    Path("t.yaml").write_text(TABLE.replace("by: AuthorizationPolicy/default/allow-a", f"by: {by}"))
    result = cli("test", "t.yaml")
    assert result.exit_code == 1
    assert f"expected it to be decided by {by}" in result.stdout


def test_by_may_name_the_group(cli: Cli) -> None:
    named = "by: AuthorizationPolicy.gateway.networking.x-k8s.io/default/allow-a"
    Path("t.yaml").write_text(TABLE.replace("by: AuthorizationPolicy/default/allow-a", named))
    assert cli("test", "t.yaml").exit_code == 0


def test_inline_objects_and_settings(cli: Cli) -> None:
    Path("t.yaml").write_text("""\
apiVersion: eastgate.dev/v1alpha1
kind: DecisionTest
metadata: {name: inline}
spec:
  settings: {trustDomain: example.org, denyOnly: allow}
  objects:
  - apiVersion: v1
    kind: Pod
    metadata: {name: p}
  - apiVersion: gateway.networking.x-k8s.io/v1alpha2
    kind: AuthorizationPolicy
    metadata: {name: q}
    spec:
      targetRefs: [{kind: Pod, selector: {}}]
      action: DENY
      rules: [{authorizationSource: {serviceAccounts: [a]}}]
  cases:
  - {from: "spiffe://example.org/ns/default/sa/a", to: pod:default/p, expect: deny}
  - {from: "spiffe://cluster.local/ns/default/sa/a", to: pod:default/p, expect: allow}
""")
    assert cli("test", "t.yaml").stdout == "2 passed, 0 failed\n"


def test_errors_in_manifests_fail_every_case(cli: Cli) -> None:
    Path("m.yaml").write_text(POLICY.replace("ALLOW", "PERMIT"))
    result = cli("test", "t.yaml")
    assert result.exit_code == 1
    assert "EG2013" in result.stderr
    assert result.stdout.endswith("0 passed, 3 failed\n")


def test_a_file_that_is_not_there_has_no_place_in_it(cli: Cli) -> None:
    Path("m.yaml").unlink()
    result = cli("test", "t.yaml")
    assert result.exit_code == 1
    assert "(None)" not in result.stdout


def test_a_rejected_policy_can_be_expected(cli: Cli) -> None:
    Path("m.yaml").write_text(POLICY.replace("ALLOW", "PERMIT"))
    table = (
        TABLE[: TABLE.index("  cases:")]
        + "  rejects:\n  - {policy: AuthorizationPolicy/default/allow-a, code: EG2013}\n"
    )
    Path("t.yaml").write_text(table)
    assert cli("test", "t.yaml").stdout == "1 passed, 0 failed\n"
    Path("t.yaml").write_text(table.replace("EG2013", "EG2001"))
    assert "expected AuthorizationPolicy/default/allow-a to be rejected with EG2001" in cli("test", "t.yaml").stdout
    Path("m.yaml").write_text(POLICY)
    assert "to be rejected, it was not" in cli("test", "t.yaml").stdout


@pytest.mark.parametrize(
    ("name", "manifest", "code"),
    [
        ("XBackend/default/a", "agentic.prototype.x-k8s.io/v0alpha0, spec: {mcp: {port: 80}}", "EG3024"),
        ("Service/default/a", "v1, spec: {selector: {app: 1}}", "EG1104"),
        ("Namespace/a", "v1, spec: {}", "EG1104"),
        ("HTTPRoute/default/a", "gateway.networking.k8s.io/v1, spec: {rules: no}", "EG1101"),
        ("Server/default/a", "policy.linkerd.io/v1beta3, spec: {}", "EG1203"),
    ],
)
def test_any_kind_can_be_expected_to_be_rejected(cli: Cli, name: str, manifest: str, code: str) -> None:
    kind = name.partition("/")[0]
    Path("m.yaml").write_text(f"{{apiVersion: {manifest}, kind: {kind}, metadata: {{name: a, labels: {{b: 1}}}}}}\n")
    rejects = f"  rejects:\n  - {{policy: {name}, code: {code}}}\n"
    Path("t.yaml").write_text(TABLE[: TABLE.index("  cases:")] + rejects)
    result = cli("test", "t.yaml")
    assert result.stdout == "1 passed, 0 failed\n", result.stdout + result.stderr


def test_cases_beside_an_object_that_is_expected_to_be_rejected_cannot_be_decided(cli: Cli) -> None:
    Path("m.yaml").write_text("{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selector: {app: 1}}}\n")
    Path("t.yaml").write_text(TABLE + "  rejects:\n  - {policy: Service/default/a, code: EG1104}\n")
    result = cli("test", "t.yaml")
    assert result.exit_code == 1
    assert "its manifests have errors" in result.stdout


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("expect: deny", "expects: deny", "did you mean `expect`?"),
        ("expect: deny", "expect: forbid", "is not allow or deny"),
        ("manifests:", "manifest:", "did you mean `manifests`?"),
        ("spec:\n", "spec:\n  settings: {denyOnlY: deny}\n", "did you mean `denyOnly`?"),
        ("port: 80", "port: http", "expected a port"),
        ("  - {name: b", "\t- {name: b", "tab"),
    ],
)
def test_a_broken_table_exits_with_2_and_says_where(cli: Cli, old: str, new: str, says: str) -> None:
    Path("t.yaml").write_text(TABLE.replace(old, new))
    result = cli("test", "t.yaml")
    assert result.exit_code == 2
    assert says in result.stderr
    assert "t.yaml:" in result.stderr
    *_, before, last = result.stdout.splitlines()
    assert before == "1 table could not be read"
    assert last == "0 passed, 1 failed"


def test_a_table_that_cannot_be_read_is_no_success_of_the_others(cli: Cli) -> None:
    Path("broken.yaml").write_text(TABLE.replace("expect: deny", "expects: deny") + "---\n" + TABLE)
    result = cli("test", ".", "-o", "junit")
    assert result.exit_code == 2
    suites = ET.fromstring(result.stdout)  # noqa: S314 - written by ourselves
    assert suites.attrib == {"tests": "5", "failures": "1"}
    [failure] = suites.iter("failure")
    assert failure.attrib["message"].startswith("it could not be read: unknown field `expects`")
    text = cli("test", ".").stdout
    assert text == (
        "FAIL ./broken.yaml:1 t: it can be read\n"
        "     it could not be read: unknown field `expects` in a case (./broken.yaml:9:73)\n"
        "1 table could not be read\n"
        "4 passed, 1 failed\n"
    )


def test_the_last_line_is_green_only_where_all_is_well(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli("test", "t.yaml").stdout == "\033[32m2 passed, 0 failed\033[0m\n"
    Path("t.yaml").write_text(TABLE.replace("expect: deny", "expect: allow"))
    assert cli("test", "t.yaml").stdout.endswith("\033[31m1 passed, 1 failed\033[0m\n")
    Path("t.yaml").write_text(TABLE.replace("expect: deny", "expects: deny"))
    assert cli("test", "t.yaml").stdout.endswith("\033[31m0 passed, 1 failed\033[0m\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("kind: DecisionTest", "kind: DecisionTst"),
        ("kind: DecisionTest", "kind: Other"),
        ("kind: DecisionTest\n", ""),
        ("kind: DecisionTest", "Kind: DecisionTest"),
        ("kind: DecisionTest", "kind: [DecisionTest]"),
    ],
)
def test_cases_in_what_is_no_table_are_not_passed_over(cli: Cli, old: str, new: str) -> None:
    Path("other.yaml").write_text(TABLE.replace(old, new))
    result = cli("test", ".")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (2, "2 passed, 1 failed")
    assert "EG0303" in result.stderr


def test_tables_without_a_case_are_an_error(cli: Cli) -> None:
    Path("t.yaml").write_text(TABLE.partition("  cases:")[0] + "  cases: []\n")
    result = cli("test", ".")
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (2, "0 passed, 1 failed")
    assert "there is no case in ." in result.stderr


def test_no_tables_at_all_is_an_error(cli: Cli) -> None:
    for path in ("m.yaml", "missing"):
        result = cli("test", path)
        assert result.exit_code == 2
        assert result.stdout.endswith("1 table could not be read\n0 passed, 1 failed\n")


def test_a_broken_file_of_a_folder_that_seems_to_hold_a_table_is_not_passed_over(cli: Cli) -> None:
    Path("broken.yaml").write_text("\t" + TABLE)
    Path("chart.yaml").write_text("{{ if .Values.on }}\nkind: Pod\n")
    result = cli("test", ".")
    assert result.exit_code == 2
    assert result.stdout.endswith("1 table could not be read\n2 passed, 1 failed\n")


def test_json_output(cli: Cli) -> None:
    answer = json.loads(cli("test", "t.yaml", "-o", "json", "--coverage").stdout)
    assert (answer["passed"], answer["failed"]) == (2, 0)
    assert answer["results"][0]["policy"] == "AuthorizationPolicy/default/allow-a"
    assert answer["coverage"] == {"rules": 1, "percent": 100.0, "missing": []}


def test_junit_output(cli: Cli) -> None:
    Path("t.yaml").write_text(TABLE.replace("expect: deny", "expect: allow"))
    result = cli("test", "t.yaml", "--junit", "report.xml")
    assert result.exit_code == 1
    suites = ET.fromstring(Path("report.xml").read_text())  # noqa: S314 - written by ourselves
    assert suites.attrib == {"tests": "2", "failures": "1"}
    failure = suites.find("testsuite/testcase[@name='b does not']/failure")
    assert failure is not None
    assert failure.attrib["message"].startswith("expected allow, got deny")
    assert cli("test", "t.yaml", "-o", "junit").stdout.startswith("<?xml")


def test_coverage_names_the_rules_that_no_case_exercised(cli: Cli) -> None:
    Path("t.yaml").write_text(TABLE[: TABLE.index("  - {name: a")] + TABLE[TABLE.index("  - {name: b") :])
    result = cli("test", "t.yaml", "--coverage")
    assert result.exit_code == 0
    assert "not exercised: AuthorizationPolicy/default/allow-a rule 0 (m.yaml:10)" in result.stdout
    assert "coverage: 0 of 1 rules (0.0 %)" in result.stdout
    assert cli("test", "t.yaml", "--fail-under", "50").exit_code == 1
    assert cli("test", "t.yaml", "--fail-under", "0").exit_code == 0


def test_verbose_shows_what_passed(cli: Cli) -> None:
    assert "ok   t: a gets in" in cli("test", "-v", "t.yaml").stdout


MISSPELT = """\
apiVersion: eastgate.dev/v1alpha1
kind: DecisionTest
metadata: {name: t}
spec:
  manifests: [{manifests}]
  cases:
  - {name: account, from: sa:shop/catr, to: pod:shop/payments, port: 8443, expect: deny}
  - {name: namespace, from: sa:shpo/cart, to: pod:shop/payments, port: 8443, expect: deny}
  - name: method
    from: sa:shop/cart
    to: pod:shop/payments
    port: 8443
    http: {method: get, path: /v1/charges/7}
    expect: deny
"""


def test_misspelt_names_and_methods_are_warned_of_where_they_stand(cli: Cli, shop: str) -> None:
    Path("t.yaml").write_text(MISSPELT.replace("{manifests}", shop))
    result = cli("test", "--follow", "t.yaml")
    assert (result.exit_code, result.stdout) == (0, "3 passed, 0 failed\n")
    for line, underlined, meant in (
        (7, "sa:shop/catr", "did you mean sa:shop/cart?"),
        (8, "sa:shpo/cart", "did you mean sa:shop/cart?"),
        (13, "get", "write GET"),
    ):
        [warning] = [one for one in result.stderr.split("\n\n") if f"--> t.yaml:{line}:" in one]
        assert warning.startswith("warning[EG013")
        assert "^" * len(underlined) in warning
        assert warning.endswith(f"= help: {meant}")
    data = json.loads(cli("test", "--follow", "t.yaml", "-o", "json").stdout)
    assert [one["underlined"] for one in data["diagnostics"]] == ["sa:shop/catr", "sa:shpo/cart", "get"]


def test_with_strict_they_fail_their_cases(cli: Cli, shop: str) -> None:
    Path("t.yaml").write_text(MISSPELT.replace("{manifests}", shop))
    result = cli("test", "--follow", "--strict", "t.yaml")
    assert result.exit_code == 1
    assert "error[EG0130]" in result.stderr
    assert "FAIL t.yaml:9 t: method\n     methods are compared with their letter case" in result.stdout
    assert result.stdout.endswith("0 passed, 3 failed\n")


def test_a_table_of_another_version_is_not_run(cli: Cli) -> None:
    Path("t.yaml").write_text(TABLE.replace("eastgate.dev/v1alpha1", "eastgate.dev/v1alpha2"))
    result = cli("test", "t.yaml")
    assert result.exit_code == 2
    assert "write apiVersion: eastgate.dev/v1alpha1" in result.stderr
