"""`eastgate describe`: its arguments, and its output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from eastgate.cli import main
from eastgate.reports.describe import policies
from tests.cli.conftest import Cli
from tests.reports.world import DRAFT


@pytest.fixture
def draft(tmp_path: Path) -> str:
    path = tmp_path / "draft.yaml"
    path.write_text(DRAFT, encoding="utf-8")
    return str(path)


def test_the_drafts_command_works_as_printed(cli: Cli, draft: str) -> None:
    result = cli("describe", "pods", "pod1", "-f", draft)
    assert result.exit_code == 0
    assert "InheritedPolicies:\n  Type                   Name   " in result.stdout
    assert "Selector={foo: a, bar: 2}" in result.stdout
    assert "\033" not in result.stdout


@pytest.mark.parametrize("words", [["pod/cart"], ["Pods", "cart"], ["pod", "cart", "-n", "shop"], ["po", "shop/cart"]])
def test_a_pod_is_named_in_every_way_that_kubectl_takes(cli: Cli, shop: str, words: list[str]) -> None:
    assert "Name:             cart" in cli("describe", *words, "-f", shop).stdout


def test_paths_may_follow_the_first_one(cli: Cli, shop: str) -> None:
    assert cli("describe", "pod", "cart", shop).exit_code == 0
    assert cli("describe", "pod/cart", shop).exit_code == 0
    assert "one name at a time" in cli("describe", "pod", "cart", "web", "-f", shop).stderr


def test_json_has_the_same_keys_for_every_pod(cli: Cli, shop: str) -> None:
    data = json.loads(cli("describe", "pods", "-f", shop, "-o", "json").stdout)["items"]
    assert len(data) == 5
    assert {tuple(one) for one in data} == {tuple(data[0])}
    one = json.loads(cli("describe", "pod", "cart", "-f", shop, "-o", "json").stdout)
    assert one["mode"]["summary"] == "allow-list"
    (row,) = [row for row in one["effective"][0]["rows"] if row["from"] == ["sa:shop/web"] and row["ports"] == [8080]]
    assert (row["verdict"], row["branches"][0]["policy"]) == ("allow", "AuthorizationPolicy/shop/cart-from-web")


def test_points_that_policies_affect_are_texts_in_json(cli: Cli) -> None:
    toystore = Path(__file__).parents[2] / "examples" / "toystore" / "manifests"
    described = json.loads(cli("describe", "namespace/toystore", "-o", "json", "-f", str(toystore)).stdout)
    assert [policy["affects"] for policy in described["policies"]] == [["HTTPRoute toystore/toystore"]]


def test_findings_that_were_not_looked_for_are_not_shown_as_none(
    cli: Cli, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "_MAX_WORKLOADS", 1)
    assert (
        "not computed: there are more than 1 workloads; run eastgate lint"
        in cli("describe", "pod/cart", "-n", "shop", "-f", shop).stdout
    )
    described = json.loads(cli("describe", "pod/cart", "-n", "shop", "-f", shop, "-o", "json").stdout)
    assert described["findings"] is None


def test_what_is_not_there_exits_with_2(cli: Cli, shop: str) -> None:
    missing = cli("describe", "pod", "carts", "-f", shop)
    assert missing.exit_code == 2
    assert "did you mean cart" in missing.stderr
    assert json.loads(cli("describe", "pod", "carts", "-f", shop, "-o", "json").stdout)["diagnostics"]
    assert cli("describe", "pot", "cart", "-f", shop).exit_code == 2
    assert cli("describe", "pod", "cart").exit_code == 2


def test_a_broken_manifest_exits_with_2(cli: Cli, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(DRAFT.replace("action: ALLOW", "action: PERMIT"), encoding="utf-8")
    assert cli("describe", "pod", "pod1", "-f", str(broken)).exit_code == 2


def test_color_only_where_it_is_wanted(cli: Cli, shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\033[1mName:\033[0m" in cli("describe", "pod", "cart", "-f", shop).stdout


def test_a_broken_lint_does_not_pass_for_one_without_findings(
    cli: Cli, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_authority: object) -> list[object]:
        raise ImportError("broken")

    monkeypatch.setattr(policies, "lint", broken)
    result = cli("describe", "policy", "payments-from-cart", "-f", shop)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "this is a bug in Eastgate: ImportError: broken" in result.stderr


def test_kinds_and_names_are_completed(shop: str) -> None:
    completer = ShellComplete(main, {}, "eastgate", "_EASTGATE_COMPLETE")
    assert "gateway" in [item.value for item in completer.get_completions(["describe", "-f", shop], "g")]
    assert [i.value for i in completer.get_completions(["describe", "-f", shop, "pod"], "pa")] == ["payments"]
