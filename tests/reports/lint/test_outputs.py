"""`eastgate lint`: its outputs and exit statuses."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from eastgate.cli import main
from tests.docs.generated import generated_pages
from tests.reports.lint.corpus import CASES, HERE

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _paths_start_in_this_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["lint", *arguments], catch_exceptions=False)


WARNING, INFO, NOTHING = "cases/EG6003/found.yaml", "cases/EG6023/found.yaml", "cases/EG6003/near-miss.yaml"
ERROR = "cases/EG6085/found.yaml"


@pytest.mark.parametrize(
    ("manifests", "threshold", "status"),
    [
        (ERROR, "error", 1),
        (WARNING, "error", 0),
        (WARNING, "warning", 1),
        (INFO, "warning", 0),
        (INFO, "info", 1),
        (ERROR, "never", 0),
        (NOTHING, "info", 0),
    ],
)
def test_the_exit_status_follows_the_threshold(manifests: str, threshold: str, status: int) -> None:
    assert run("-f", manifests, "--fail-on", threshold).exit_code == status


def test_the_default_threshold_is_warning() -> None:
    assert run("-f", WARNING).exit_code == 1
    assert run("-f", INFO).exit_code == 0


def test_findings_are_shown_as_diagnostics_are_and_counted() -> None:
    result = run("-f", WARNING)
    assert result.output == (HERE / "cases/EG6003/expected.txt").read_text("utf-8") + "\n1 warning\n"
    assert run("-f", NOTHING).output == "no findings\n"


@pytest.mark.parametrize("output", ["text", "json", "sarif", "github"])
def test_errors_in_manifests_are_findings_in_every_form(output: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text((HERE / WARNING).read_text("utf-8").replace("action: ALLOW", "action: ALOW"), encoding="utf-8")
    result = run("-f", str(broken), "-o", output)
    assert result.exit_code == 1
    assert "ALOW" in result.output


def test_no_manifests_is_an_error() -> None:
    assert run().exit_code == 2


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--ignore", "EG6003"], 0),
        (["--ignore", "eg60"], 0),
        (["--select", "EG6003"], 1),
        (["--select", "EG6001,EG6022"], 0),
        (["--select", "EG6", "--ignore", "EG6003"], 0),
    ],
)
def test_codes_can_be_selected_and_ignored(options: list[str], status: int) -> None:
    assert run("-f", WARNING, *options).exit_code == status


@pytest.mark.parametrize("option", ["--select", "--ignore"])
def test_an_unknown_code_cannot_be_selected(option: str) -> None:
    assert run("-f", WARNING, option, "ports").exit_code == 2


def test_settings_count() -> None:
    assert "denyOnly: deny, and allowed" in run("-f", "cases/EG6042-default/found.yaml").output
    assert "denyOnly: allow, and denied" in run("-f", "cases/EG6042/found.yaml", "--set", "denyOnly=allow").output


def test_json_has_the_place_the_subjects_and_an_example() -> None:
    told = json.loads(run("-f", "cases/EG6040/found.yaml", "-o", "json").output)
    assert told["summary"] == {"error": 0, "warning": 1, "info": 0}
    (finding,) = told["findings"]
    assert finding["code"] == "EG6040"
    assert finding["severity"] == "warning"
    assert (finding["file"], finding["line"]) == ("cases/EG6040/found.yaml", 17)
    assert finding["underlined"] == "web-closed"
    assert finding["subjects"] == ["AuthorizationPolicy/shop/web-closed", "shop/web"]
    manifests = "-f cases/EG6040/found.yaml"
    assert finding["example"] == f"eastgate check {manifests} --from anonymous --to pod:shop/web --port 8080"


@pytest.mark.parametrize(
    "options",
    [
        ["-f", "cases/EG6040/found.yaml"],
        ["cases/EG6040/found.yaml", "--set", "denyOnly=allow", "-n", "shop"],
        ["-f", "cases/EG6040", "--exclude", "near-*", "--follow"],
    ],
)
def test_an_example_can_be_run_as_it_is(options: list[str]) -> None:
    told = json.loads(run(*options, "-o", "json").output)
    result = CliRunner().invoke(main, shlex.split(told["findings"][0]["example"])[1:])
    assert (result.exit_code, result.output[:4]) == (1, "DENY"), result.output


def test_github_annotations_name_file_and_line_and_stay_on_one_line() -> None:
    (line,) = run("-f", WARNING, "-o", "github").output.splitlines()
    assert line.startswith("::warning file=cases/EG6003/found.yaml,line=32,col=33,endColumn=35,title=EG6003 ")
    assert "%0A80 is the port of Service shop/web; write that of its pods, 8080" in line
    assert run("-f", INFO, "-o", "github").output.startswith("::notice file=")


# Explanations


def test_a_code_is_explained_with_an_example_and_without_manifests() -> None:
    result = run("--explain", "eg6304")
    assert result.exit_code == 0
    assert result.output.startswith("warning[EG6304]: namespaceSelector beside a podSelector\n\nTwo entries")
    wrong, right = result.output.split("Right:")
    assert "  - podSelector:" in wrong
    assert "    podSelector:" in right


@pytest.mark.parametrize(
    ("code", "hint"),
    [("EG6340", "did you mean"), ("ports", "https://eastgate.dev/reference/diagnostics/ lists all codes")],
)
def test_a_code_that_does_not_exist_cannot_be_explained(code: str, hint: str) -> None:
    result = run("--explain", code)
    assert result.exit_code == 2
    assert hint in result.output


# SARIF


def sarif(*arguments: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(run(*arguments, "-o", "sarif").output)
    return told


@pytest.mark.parametrize("case", CASES)
def test_sarif_has_the_fields_of_the_standard(case: str) -> None:
    told = sarif("-f", f"cases/{case}/found.yaml", *_settings(case))
    assert told["version"] == "2.1.0"
    assert told["$schema"].endswith("sarif-2.1.0.json")
    (run_,) = told["runs"]
    driver = run_["tool"]["driver"]
    assert driver["name"] == "eastgate"
    rules = driver["rules"]
    ids = [rule["id"] for rule in rules]
    assert len(ids) == len(set(ids))
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["fullDescription"]["text"]
        assert re.fullmatch(r"https://\S+/reference/diagnostics/eg\d{4}/", rule["helpUri"])
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    assert run_["results"]
    for result in run_["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"]["uri"] == f"cases/{case}/found.yaml"
        region = place["region"]
        start, end = (region["startLine"], region["startColumn"]), (region["endLine"], region["endColumn"])
        assert (1, 1) <= start < end


def _settings(case: str) -> list[str]:
    first = (HERE / "cases" / case / "found.yaml").read_text("utf-8").splitlines()[0]
    return ["--set", first.removeprefix("# settings: ")] if first.startswith("# settings: ") else []


def test_the_links_of_sarif_lead_to_pages_of_the_site() -> None:
    site = "https://eastgate.dev/"
    links = {rule["helpUri"] for rule in sarif("-f", WARNING)["runs"][0]["tool"]["driver"]["rules"]}
    assert links
    assert links <= {site + name.removesuffix(".md") + "/" for name in generated_pages()}


def test_a_finding_keeps_its_fingerprint_when_lines_are_added_above_it(tmp_path: Path) -> None:
    text = (HERE / WARNING).read_text("utf-8")
    prints = []
    for written in (text, "# a comment\n\n" + text):
        (tmp_path / "a.yaml").write_text(written, encoding="utf-8")
        prints.append(sarif("-f", str(tmp_path))["runs"][0]["results"][0]["partialFingerprints"])
    assert prints[0] == prints[1]
