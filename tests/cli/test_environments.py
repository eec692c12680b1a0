"""A folder with several environments: every command answers for each, and writes equal output once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.environments import one_for_each_folder

_PODS = """
apiVersion: v1
kind: Pod
metadata: {name: cart, namespace: shop, labels: {app: cart}}
spec: {serviceAccountName: cart, containers: [{name: main, ports: [{containerPort: 8080}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {serviceAccountName: web, containers: [{name: main, ports: [{containerPort: 8080}]}]}
"""
_CLOSED = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: cart, namespace: shop}
spec: {podSelector: {matchLabels: {app: cart}}, policyTypes: [Ingress], ingress: []}
"""
_TYPO = (
    "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: cart, namespace: shop}\nspec: {pods: 1}\n"
)
_ASK = ("--from", "pod:shop/web", "--to", "pod:shop/cart", "--port", "8080")


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eastgate.reading.repository.find_environments", one_for_each_folder)


def _write(folder: str, *texts: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(texts):
        Path(folder, f"{number}.yaml").write_text(text, encoding="utf-8")


@pytest.fixture
def repo(cli: Cli) -> Cli:
    """`cli`, in a folder with a repository whose cart is closed in production."""
    _write("repo/dev", _PODS)
    _write("repo/prod", _PODS, _CLOSED)
    _write("repo/staging", _PODS, _CLOSED)
    return cli


# Check and explain


def test_the_first_line_says_where_answers_agree_and_each_answer_is_written_once(repo: Cli) -> None:
    result = repo("check", "-f", "repo", *_ASK)
    assert result.exit_code == 1
    first, _, *blocks = result.stdout.splitlines()
    assert first == "DENY in prod, staging; ALLOW in dev"
    assert [line for line in blocks if line.endswith(":")] == ["dev:", "prod, staging:"]


def test_one_answer_for_all_environments_needs_no_heading(repo: Cli) -> None:
    for name in ("prod", "staging"):
        Path(f"repo/{name}/1.yaml").unlink()
    result = repo("check", "-f", "repo", *_ASK)
    assert result.exit_code == 0
    assert result.stdout.startswith("ALLOW in dev, prod, staging\n\nALLOW  ")


def test_policies_by_themselves_are_about_what_runs_elsewhere(repo: Cli) -> None:
    _write("repo/prod", _CLOSED)
    Path("repo/prod/1.yaml").unlink()
    Path("repo/staging/1.yaml").unlink()
    result = repo("check", "-f", "repo", *_ASK)
    assert result.exit_code == 3
    assert result.stdout.splitlines()[0] == "ALLOW in dev, staging; not decided in prod"


def test_policies_beside_something_else_may_be_about_what_runs_elsewhere_too(repo: Cli) -> None:
    _write("repo/prod", _CLOSED)
    metadata, spec = "{name: other, namespace: other}", "{containers: [{name: c, image: c}]}"
    Path("repo/prod/1.yaml").write_text(f"apiVersion: v1\nkind: Pod\nmetadata: {metadata}\nspec: {spec}\n")
    result = repo("check", "-f", "repo", *_ASK)
    assert result.exit_code == 3
    assert result.stdout.splitlines()[0].endswith("not decided in prod")


@pytest.mark.parametrize(
    ("selector", "namespace", "rest_of_line"),
    [
        ("{}", "shop", "not decided in prod"),
        ("{}", "other", "not in prod"),
        ("{matchLabels: {app: web}}", "shop", "not in prod"),
    ],
)
def test_policies_for_a_whole_namespace_may_be_about_what_runs_elsewhere(
    selector: str, namespace: str, rest_of_line: str, repo: Cli
) -> None:
    pods = _PODS.replace("name: cart", "name: batch").replace("app: cart", "app: batch")
    pods += f"---\n{_PODS.replace('namespace: shop', 'namespace: other')}"
    policy = _CLOSED.replace("{matchLabels: {app: cart}}", selector).replace(
        "namespace: shop", f"namespace: {namespace}"
    )
    _write("repo/prod", pods, policy)
    Path("repo/staging/1.yaml").unlink()
    result = repo("check", "-f", "repo", *_ASK)
    assert result.stdout.splitlines()[0] == f"ALLOW in dev, staging; {rest_of_line}"
    assert result.exit_code == (3 if "not decided" in rest_of_line else 0)


def test_an_environment_without_the_destination_is_named_and_no_error(repo: Cli) -> None:
    _write("repo/dev", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
    result = repo("check", "-f", "repo", *_ASK)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "DENY in prod, staging; not in dev"
    assert result.stderr == ""


def test_it_is_an_error_that_no_environment_has_the_destination(repo: Cli) -> None:
    result = repo("check", "-f", "repo", "--from", "pod:shop/web", "--to", "pod:shop/nothing", "--port", "80")
    assert result.exit_code == 2
    assert result.stderr.count("EG0103") == 1


def test_where_something_is_left_out_that_the_destination_is_not_there_is_not_known(repo: Cli) -> None:
    _write("repo/dev", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
    Path("repo/dev/redis").touch()
    for name in ("prod", "staging"):
        Path(f"repo/{name}/1.yaml").unlink()
    result = repo("check", "-f", "repo", *_ASK)
    assert result.exit_code == 3
    assert result.stdout.splitlines()[0] == "ALLOW in prod, staging; not decided in dev"


def test_an_environment_that_cannot_be_read_does_not_stop_the_others(repo: Cli) -> None:
    _write("repo/dev", "kind: [")
    result = repo("check", "-f", "repo", *_ASK)
    assert result.exit_code == 3
    assert result.stdout.splitlines()[0] == "DENY in prod, staging; not decided in dev"
    assert "= in: dev" in result.stderr
    assert result.stderr.endswith("could not decide in dev\n")


def test_with_strict_an_environment_that_cannot_be_read_is_an_error(repo: Cli) -> None:
    _write("repo/dev", "kind: [")
    assert repo("check", "-f", "repo", "--strict", *_ASK).exit_code == 2


def test_a_policy_that_cannot_be_read_closes_its_target_in_its_environment_only(repo: Cli) -> None:
    _write("repo/dev", _PODS, _TYPO)
    for name in ("prod", "staging"):
        Path(f"repo/{name}/1.yaml").unlink()
    result = repo("check", "-f", "repo", *_ASK)
    assert result.exit_code == 3
    assert result.stdout.splitlines()[0] == "ALLOW in prod, staging; not decided in dev"


def test_json_has_the_answer_of_each_environment(repo: Cli) -> None:
    result = repo("check", "-f", "repo", "-o", "json", *_ASK)
    answers = json.loads(result.stdout)["environments"]
    assert {name: answer["verdict"] for name, answer in answers.items()} == {
        "dev": "allow",
        "prod": "deny",
        "staging": "deny",
    }


def test_the_answer_for_one_environment_is_that_of_its_folder(repo: Cli) -> None:
    for words in (("check", *_ASK), ("explain", *_ASK), ("graph",), ("lint",), ("describe", "pod", "shop/cart")):
        chosen = repo(*words, "-f", "repo", "--environment", "prod")
        alone = repo(*words, "-f", "repo/prod")
        assert (chosen.stdout, chosen.exit_code) == (
            alone.stdout.replace("-f repo/prod", "-f repo --environment prod"),
            alone.exit_code,
        )


def test_patterns_choose_environments(repo: Cli) -> None:
    result = repo("check", "-f", "repo", "--environment", "[ps]*", *_ASK)
    assert result.stdout.splitlines()[0] == "DENY in prod, staging"


def test_an_environment_that_does_not_exist_is_an_error(repo: Cli) -> None:
    result = repo("check", "-f", "repo", "--environment", "prdo", *_ASK)
    assert result.exit_code == 2
    assert "there is no environment `prdo`" in result.stderr
    assert "did you mean prod?" in result.stderr


def test_other_paths_belong_to_every_environment(repo: Cli) -> None:
    Path("closed.yaml").write_text(_CLOSED.replace("name: cart", "name: more"), encoding="utf-8")
    result = repo("check", "-f", "repo", "-f", "closed.yaml", *_ASK)
    assert result.stdout.splitlines()[0] == "DENY in dev, prod, staging"
    piped = repo("check", "-f", "repo", "-f", "-", *_ASK, stdin=_CLOSED.replace("name: cart", "name: more"))
    assert piped.stdout.splitlines()[0] == "DENY in dev, prod, staging"


def test_environments_of_one_name_in_two_folders_are_one(repo: Cli) -> None:
    _write("apps/dev", _PODS)
    _write("apps/prod", _PODS)
    _write("infra/dev", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n")
    _write("infra/prod", _CLOSED)
    result = repo("check", "-f", "apps", "-f", "infra", *_ASK)
    assert result.stdout.splitlines()[0] == "DENY in prod; ALLOW in dev"


def test_explain_names_the_environments_too(repo: Cli) -> None:
    result = repo("explain", "-f", "repo", *_ASK)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "DENY in prod, staging; ALLOW in dev"


# Lists, graphs and findings


_NOTHING = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"


@pytest.mark.parametrize(
    ("names", "line"),
    [
        (["a"], "nothing to show in a"),
        (["a", "b", "c"], "nothing to show in a, b, c"),
        (list("abcdef"), "nothing to show in 6 environments: a, b, c and 3 more"),
    ],
)
def test_a_graph_of_nothing_is_one_line_for_all_environments(names: list[str], line: str, repo: Cli) -> None:
    for name in names:
        _write(f"repo/{name}", f"# {name}\n{_NOTHING}")
    result = repo("graph", "-f", "repo")
    assert result.stdout.splitlines()[-1] == line
    assert "no selected caller can reach" not in result.stdout
    for name in names:
        Path(f"repo/{name}/redis").touch()
    result = repo("graph", "-f", "repo")
    assert result.stdout.splitlines()[-1] == line.replace("show", "show (from what was read)")
    assert (result.exit_code, "left out: chart redis" in result.stderr) == (3, True)


def test_only_empty_graphs_are_one_line_too(cli: Cli) -> None:
    for name in "abcd":
        _write(f"repo/{name}", f"# {name}\n{_NOTHING}")
    assert cli("graph", "-f", "repo").stdout == "nothing to show in all 4 environments\n"
    assert cli("graph", "-f", "repo/a").stdout == "no selected caller can reach a selected destination\n"


def test_a_heading_names_a_few_of_many_environments(repo: Cli) -> None:
    for number in range(20):
        _write(f"repo/prod-{number:02}", _PODS, _CLOSED)
    for words in (("graph",), ("get", "policies"), ("check", *_ASK)):
        headings = [line for line in repo(*words, "-f", "repo").stdout.splitlines() if line.endswith(":")]
        assert any(line.startswith("prod, prod-00, ") and line.endswith(" and 10 more:") for line in headings), headings


def test_environments_are_listed_with_what_they_are_made_of(repo: Cli) -> None:
    Path("repo/dev/redis").touch()
    assert repo("get", "environments", "-f", "repo").stdout.splitlines() == [
        "NAME     KIND       ENTRY         PARTS    NAMESPACE  LEFT OUT",
        "dev      manifests  repo/dev      1 file   -          1",
        "prod     manifests  repo/prod     2 files  -          -",
        "staging  manifests  repo/staging  2 files  -          -",
    ]
    listed = json.loads(repo("get", "environments", "dev", "-f", "repo", "-o", "json").stdout)["environments"]
    assert listed == [
        {
            "name": "dev",
            "kind": "manifests",
            "entry": "repo/dev",
            "namespace": None,
            "parts": [{"files": ["repo/dev/0.yaml"]}],
            "leftOut": [
                {"what": "chart redis", "where": "repo/dev", "why": "it needs the network", "canDecide": True},
            ],
        }
    ]
    assert repo("get", "environments", "-f", "repo", "-o", "name").stdout == "dev\nprod\nstaging\n"
    assert (
        "chart redis (repo/dev): it needs the network" in repo("get", "environments", "-f", "repo", "-o", "wide").stdout
    )


def test_rows_that_are_the_same_are_listed_once(repo: Cli) -> None:
    result = repo("get", "policies", "-f", "repo", "-o", "name")
    assert result.stdout == "networkpolicy.networking.k8s.io/cart\n"
    assert repo("get", "pods", "-f", "repo").stdout.count("shop") == 2 + 2  # prod and staging agree


def test_a_name_that_some_environments_have_is_there(repo: Cli) -> None:
    result = repo("get", "policy", "cart", "-f", "repo", "--no-headers")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.startswith("prod, staging:\n")
    assert repo("get", "policy", "nothing", "-f", "repo").exit_code == 2


def test_a_thing_is_described_for_each_environment_that_has_it(repo: Cli) -> None:
    _write("repo/dev", _PODS.replace("name: cart", "name: basket"))
    result = repo("describe", "pod", "shop/basket", "-f", "repo")
    assert result.exit_code == 0
    assert result.stdout.startswith("dev:\n")


def test_equal_graphs_are_drawn_once_and_different_ones_cannot_be_one_picture(repo: Cli) -> None:
    text = repo("graph", "-f", "repo").stdout
    assert [line for line in text.splitlines() if line.endswith(":") and " " not in line.rstrip(":")][:1] == ["dev:"]
    assert "prod, staging:\n" in text
    refused = repo("graph", "-f", "repo", "-o", "mermaid")
    assert refused.exit_code == 2
    assert "they differ; choose one: --environment dev" in refused.stderr
    assert repo("graph", "-f", "repo", "-o", "mermaid", "--environment", "dev").exit_code == 0
    graphs = json.loads(repo("graph", "-f", "repo", "-o", "json").stdout)["environments"]
    assert {name for name, graph in graphs.items() if graph["nodes"]} == {
        "dev",
        "prod",
        "staging",
    }


_UNUSED = _CLOSED.replace("app: cart", "app: nothing")


def test_a_finding_is_shown_once_with_the_environments_that_have_it(repo: Cli) -> None:
    Path("base.yaml").write_text(_UNUSED, encoding="utf-8")
    for name in ("dev", "prod", "staging", "test", "qa"):
        _write(f"more/{name}", _PODS)
    everywhere = repo("lint", "-f", "more", "-f", "base.yaml").stdout
    assert everywhere.count("EG6001") + everywhere.count("selects nothing") >= 1
    assert "= in:" not in everywhere
    assert "; 5 environments: dev, prod, qa, staging, test" in everywhere
    _write("more/dev", _PODS, _UNUSED)
    some = repo("lint", "-f", "more").stdout
    assert "= in: dev\n" in some


def test_lint_of_an_environment_that_cannot_be_read_shows_the_findings_of_the_others(repo: Cli) -> None:
    _write("repo/dev", "kind: [")
    result = repo("lint", "-f", "repo", "--fail-on", "never")
    assert result.exit_code == 3
    assert "= in: dev" in result.stdout
    for name in ("prod", "staging"):
        _write(f"repo/{name}", "kind: [")
    assert repo("lint", "-f", "repo").exit_code == 1
    for name in ("prod", "staging"):
        _write(f"repo/{name}", "kind: [", "kind: [")
    assert repo("lint", "-f", "repo").exit_code == 2


def test_a_baseline_holds_for_all_environments(repo: Cli) -> None:
    _write("repo/dev", _PODS, _UNUSED)
    assert repo("lint", "-f", "repo").exit_code == 1
    assert repo("lint", "-f", "repo", "--write-baseline", "known.json").exit_code == 0
    assert repo("lint", "-f", "repo", "--baseline", "known.json").exit_code == 0
    counted = json.loads(repo("lint", "-f", "repo", "--baseline", "known.json", "-o", "json").stdout)["environments"]
    assert {name: each["baseline"]["known"] > 0 for name, each in counted.items()}["dev"]


# Differences


def test_environments_of_one_name_are_compared(repo: Cli) -> None:
    _write("new/dev", _PODS, _CLOSED)
    _write("new/prod", _PODS, _CLOSED)
    _write("new/qa", _PODS)
    result = repo("diff", "repo", "new")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "changes in dev; no change in prod; only in OLD: staging; only in NEW: qa"


def test_an_environment_that_one_side_lacks_is_not_proven_to_be_the_same(repo: Cli) -> None:
    _write("new/dev", _PODS)
    _write("new/prod", _PODS, _CLOSED)
    assert repo("diff", "repo", "repo").exit_code == 0
    assert repo("diff", "repo", "new").exit_code == 3


def test_two_environments_are_compared_with_each_other(repo: Cli) -> None:
    result = repo("diff", "-f", "repo", "--between", "staging", "dev")
    assert result.exit_code == 1
    assert "eastgate check -f repo --environment dev" in result.stdout
    assert repo("diff", "-f", "repo", "--between", "prod", "staging").exit_code == 0
    assert repo("diff", "-f", "repo", "--between", "prod", "stagign").exit_code == 2
    assert repo("diff", "-f", "repo", "--between", "prod", "dev", "--without", "x").exit_code == 2


def test_a_change_is_tried_in_each_environment_that_has_the_object(repo: Cli) -> None:
    result = repo("diff", "-f", "repo", "--without", "NetworkPolicy/shop/cart")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "changes in prod, staging; not in dev"


def test_a_comment_begins_with_its_mark_once(repo: Cli) -> None:
    _write("new/dev", _PODS, _CLOSED)
    _write("new/prod", _PODS, _CLOSED)
    lines = repo("diff", "repo", "new", "-o", "markdown").stdout.splitlines()
    assert lines[0] == "<!-- eastgate diff -->"
    assert lines.count(lines[0]) == 1


# One environment only


@pytest.mark.parametrize("verb", ["up", "authorizer"])
def test_what_is_about_one_environment_lists_them(repo: Cli, verb: str) -> None:
    result = repo(verb, "-f", "repo")
    assert result.exit_code == 2
    assert "there are 3 environments: dev, prod, staging" in result.stderr
    assert "choose one: --environment dev" in result.stderr


def test_each_environment_is_converted_into_a_folder_of_its_own(repo: Cli) -> None:
    policy = """
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: cart, namespace: shop}
spec: {selector: {matchLabels: {app: cart}}, rules: [{from: [{source: {principals: [NAME]}}]}]}
"""
    for name in ("dev", "prod", "staging"):
        _write(f"repo/{name}", _PODS, policy.replace("NAME", f"cluster.local/ns/shop/sa/{name}"))
    refused = repo("convert", "--to", "authorizationpolicy-v1alpha2", "-f", "repo")
    assert refused.exit_code == 2
    assert "they differ; choose one: --environment dev" in refused.stderr
    repo("convert", "--to", "authorizationpolicy-v1alpha2", "-f", "repo", "--out", "out")
    assert sorted(path.name for path in Path("out").iterdir()) == ["dev", "prod", "staging"]


# Decision tables


_TABLE = """
apiVersion: eastgate.dev/v1alpha1
kind: DecisionTest
metadata: {name: cart}
spec:
  manifests: [repo]
  environments: [prod, stag*]
  cases: [{name: closed, from: "pod:shop/web", to: "pod:shop/cart", port: 8080, expect: deny}]
---
apiVersion: eastgate.dev/v1alpha1
kind: Invariant
metadata: {name: closed}
spec:
  manifests: [repo]
  environments: ["*"]
  never: {from: {any: true}, to: {pods: {matchLabels: {app: cart}}}}
"""


def test_a_table_is_run_in_each_environment_that_it_names(repo: Cli) -> None:
    Path("t.yaml").write_text(_TABLE, encoding="utf-8")
    result = repo("test", "t.yaml", "-v")
    assert result.exit_code == 1
    assert [line for line in result.stdout.splitlines() if line.startswith(("ok", "FAIL"))] == [
        "ok   cart in prod: closed",
        "ok   cart in staging: closed",
        "FAIL t.yaml:16 closed in dev: never",
        "ok   closed in prod: never",
        "ok   closed in staging: never",
    ]
    assert "eastgate explain -f repo --environment dev --from" in result.stdout
    results = json.loads(repo("test", "t.yaml", "-o", "json").stdout)["results"]
    assert [each["environment"] for each in results] == ["prod", "staging", "dev", "prod", "staging"]
    assert repo("test", "t.yaml", "-o", "junit").stdout.count("<testsuite ") == 5


@pytest.mark.parametrize(("named", "message"), [("[qa]", "there is no environment `qa`"), ("[]", "fits nothing")])
def test_a_table_about_no_environment_cannot_pass(repo: Cli, named: str, message: str) -> None:
    Path("t.yaml").write_text(_TABLE.replace("[prod, stag*]", named), encoding="utf-8")
    result = repo("test", "t.yaml")
    assert result.exit_code != 0
    assert message in result.output


def test_of_many_alike_errors_a_few_are_written_out(repo: Cli) -> None:
    for number in range(9):
        _write(f"repo/more-{number}", f"kind: Pod\napiVersion: v1\nmetadata: {{name: [{number}]}}\n")
    result = repo("check", "-f", "repo", *_ASK)
    code = result.stderr.partition("[")[2][:6]
    assert result.stderr.count(f"error[{code}]: ") == 6
    assert f"error[{code}]: 4 more in more-5, more-6, more-7, more-8" in result.stderr
