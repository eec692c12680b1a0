"""A dialect is one package and one line: guest lists run through every command and real proxies."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from eastgate import Authority, Question, dialects
from eastgate.authority.reading import sort_documents
from eastgate.cli import main
from eastgate.cli.catalogue import all_codes, chapters
from eastgate.cli.complete import kinds_and_names
from eastgate.local.calls import make_calls
from eastgate.local.mesh import LocalMesh, MeshOptions
from eastgate.reading.manifests.reader import read_text
from eastgate.settings import Settings, SettingsError
from tests import toy
from tests.local.running import up
from tests.toy import codes
from tests.toy.codes import GUEST
from tests.toy.settings import GuestRefusal, ToySettings

PARTY = Path(__file__).with_name("party.yaml")
CALL = ("--to", "pod:shop/cart", "--port", "8080")
TABLE = """
apiVersion: eastgate.dev/v1alpha1
kind: DecisionTest
metadata: {name: party}
spec:
  manifests: [party.yaml]
  cases:
    - {from: "sa:shop/web", to: "pod:shop/cart", port: 8080, expect: allow, by: GuestList/shop/cart}
    - {from: "sa:shop/thief", to: "pod:shop/cart", port: 8080, expect: deny, status: 0}
"""


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the dialect. No other code is necessary."""
    monkeypatch.setattr(dialects, "DIALECTS", (*dialects.DIALECTS, toy.DIALECT))


@pytest.fixture
def eastgate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Return a function that runs the command in a folder with the manifests."""
    shutil.copy(PARTY, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")

    def run(verb: str, *words: str, code: int = 0) -> Result:
        result = CliRunner().invoke(main, [verb, *words], catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result

    return run


Run = Callable[..., Result]


def test_without_its_line_it_is_not_known(eastgate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as unregistered:
        unregistered.setattr(dialects, "DIALECTS", dialects.DIALECTS[:-1])
        assert "GuestList" not in eastgate("version").output
        assert not dialects.reads("toy.example.com/v1", "GuestList")
    assert "toy.example.com/v1 GuestList" in eastgate("version").output
    assert dialects.reads("toy.example.com/v1", "GuestList")


# Deciding


def test_check_and_explain(eastgate: Run) -> None:
    allowed = eastgate("check", "-f", "party.yaml", "--from", "sa:shop/web", *CALL).output
    assert allowed == "ALLOW  GuestList/shop/cart rule 0 allows it  (party.yaml:26)\n"
    assert eastgate("check", "-f", "party.yaml", "--from", "sa:shop/thief", *CALL, code=1).output.startswith("DENY")
    explained = eastgate("explain", "-f", "party.yaml", "--from", "sa:shop/thief", *CALL, code=1).output
    assert "workload/guests" in explained
    assert "guests: [web]" in explained  # the nearest rule, with its line


def test_the_graph_has_its_rules(eastgate: Run) -> None:
    edges = json.loads(eastgate("graph", "-f", "party.yaml", "--to", "pod:shop/cart", "-o", "json").output)["edges"]
    assert {(edge["from"], edge["policy"], edge["line"]) for edge in edges} == {
        ("sa:shop/web", "GuestList/shop/cart", 26)
    }


def test_tables_and_their_coverage(eastgate: Run) -> None:
    Path("party.test.yaml").write_text(TABLE)
    output = eastgate("test", "party.test.yaml", "--coverage").output
    assert "2 passed, 0 failed" in output
    assert "100" in output


def test_its_setting_is_taken_by_its_name(eastgate: Run) -> None:
    asked = ("-f", "party.yaml", "--from", "sa:shop/thief", *CALL, "-o", "json")
    closed = json.loads(eastgate("check", *asked, code=1).output)
    forbidden = json.loads(eastgate("check", *asked, "--set", "guestRefusal=forbidden", code=1).output)
    assert (closed["status"], forbidden["status"]) == (0, 403)
    assert Settings.from_mapping({"guestRefusal": "forbidden"}) == Settings(
        sections=(ToySettings(GuestRefusal.FORBIDDEN),)
    )
    assert Settings.from_mapping({}).to_json()["guestRefusal"] == "closed"
    with pytest.raises(SettingsError, match="did you mean `guestRefusal`"):
        Settings.from_mapping({"guestRefusals": "closed"})


def test_a_list_with_errors_closes_only_its_targets(eastgate: Run) -> None:
    Path("party.yaml").write_text(PARTY.read_text().replace("[web]", "[Web]"))
    output = eastgate("check", "-f", "party.yaml", "--from", "sa:shop/web", *CALL, code=2).output
    assert f"error[{GUEST.id}]: `Web` is not the name of a service account" in output
    shown = eastgate("get", "policies", "-f", "party.yaml", code=2).stdout.splitlines()[1].split()
    assert shown[:7] == ["shop", "cart", "GuestList", "Pod/{app:", "cart}", "UNREADABLE", "1"]
    assert "closed" in eastgate("describe", "pod", "cart", "-f", "party.yaml", code=2).stdout
    assert "closed" not in eastgate("describe", "pod", "web", "-f", "party.yaml").stdout


def test_a_misspelt_group_or_version_is_not_left_aside(eastgate: Run) -> None:
    for written in ("toy.example.org/v1", "toy.example.com/v2"):
        Path("party.yaml").write_text(PARTY.read_text().replace("toy.example.com/v1", written))
        output = eastgate("check", "-f", "party.yaml", "--from", "sa:shop/thief", *CALL, code=2).output
        assert "toy.example.com/v1" in output


# Reporting


def test_get_lists_policies_and_modes(eastgate: Run) -> None:
    for word in ("policies", "guestlists", "gl", "GuestList.toy.example.com"):
        row = eastgate("get", word, "-f", "party.yaml", "-o", "wide").output.splitlines()[1].split()
        assert row[:8] == ["shop", "cart", "GuestList", "Pod/{app:", "cart}", "ALLOW", "1", "1"]
        assert row[8:10] == ["True", "guests"]
    pods = [line.split() for line in eastgate("get", "pods", "-f", "party.yaml").output.splitlines()]
    modes = {cells[1]: cells[6] for cells in pods}
    assert (modes["cart"], modes["web"]) == ("allow-list", "open")
    manifest = json.loads(eastgate("get", "gl", "-f", "party.yaml", "-o", "json").output)
    assert manifest["items"][0]["spec"] == {"app": "cart", "guests": ["web"]}


def test_describe_knows_every_subject(eastgate: Run) -> None:
    policy = json.loads(eastgate("describe", "guestlist", "cart", "-f", "party.yaml", "-o", "json").output)
    assert (policy["action"], policy["level"], policy["affects"]["points"]) == ("ALLOW", "guests", ["shop/cart"])
    assert [(rule["does"], rule["asks"]) for rule in policy["rules"]] == [("ALLOW", "from sa:shop/web")]
    assert policy["status"]["conditions"][0]["type"] == "Accepted"
    pod = json.loads(eastgate("describe", "pod", "cart", "-f", "party.yaml", "-o", "json").output)
    assert pod["mode"]["summary"] == "allow-list"
    assert pod["policies"][0]["matched"] == [["app: cart"]]
    verdicts = [row["verdict"] for table in pod["effective"] for row in table["rows"]]
    assert verdicts == ["allow", "deny"]
    assert "allow-list" in eastgate("describe", "service", "cart", "-f", "party.yaml").output
    assert "GuestList/shop/cart" in eastgate("describe", "namespace", "shop", "-f", "party.yaml").output


def test_a_list_without_guests_closes_and_one_without_pods_is_reported(eastgate: Run) -> None:
    Path("party.yaml").write_text(PARTY.read_text().replace("  guests: [web]\n", ""))
    assert "no rule allows anything" in eastgate("describe", "pod", "cart", "-f", "party.yaml").output
    assert "1 workload" in eastgate("describe", "policy", "cart", "-f", "party.yaml").output
    Path("party.yaml").write_text(PARTY.read_text().replace("app: cart\n  guests", "app: card\n  guests"))
    assert "nothing: no pod has the app's label" in eastgate("describe", "policy", "cart", "-f", "party.yaml").output


def test_one_that_is_audited_is_observed(eastgate: Run) -> None:
    text = PARTY.read_text()
    audited = "metadata: {namespace: shop, name: cart, annotations: {eastgate.dev/mode: audit}}\nspec:\n  app"
    Path("party.yaml").write_text(text.replace("metadata: {namespace: shop, name: cart}\nspec:\n  app", audited))
    eastgate("check", "-f", "party.yaml", "--from", "sa:shop/thief", *CALL)
    assert "observed only" in eastgate("describe", "policy", "cart", "-f", "party.yaml").output
    assert (
        "if it were enforced, GuestList/shop/cart would deny sa:shop/thief"
        in eastgate("lint", "-f", "party.yaml").output
    )


def test_lint_checks_its_targets(eastgate: Run) -> None:
    assert eastgate("lint", "-f", "party.yaml").output == "no findings\n"
    Path("party.yaml").write_text(PARTY.read_text().replace("app: cart\n  guests", "app: card\n  guests"))
    assert "GuestList/shop/cart" in eastgate("lint", "-f", "party.yaml", code=1).output


def test_convert_writes_the_forms_of_the_dialect_with_the_same_decisions(eastgate: Run) -> None:
    converted = eastgate("convert", "--to", "authorizationpolicy-v1alpha2", "-f", "party.yaml").output
    pods, _, _ = PARTY.read_text().rpartition("---")
    Path("party.yaml").write_text(f"{pods}---\n{converted}")
    eastgate("check", "-f", "party.yaml", "--from", "sa:shop/web", *CALL)
    eastgate("check", "-f", "party.yaml", "--from", "sa:shop/thief", *CALL, code=1)


def test_convert_reports_unsupported_targets(eastgate: Run) -> None:
    for to in ("linkerd", "istio"):
        output = eastgate("convert", "--to", to, "-f", "party.yaml", code=1).output
        assert f"GuestList/shop/cart cannot be converted to {to}" in output
        assert "1 policy is not converted and must stay in force" in output


def test_an_api_server_and_editors_can_have_it(eastgate: Run) -> None:
    assert "name: guestlists.toy.example.com" in eastgate("crds").output
    eastgate("crds", "--json-schema", "--dir", "schemas")
    assert "guests" in Path("schemas/toy.example.com/guestlist_v1.json").read_text()


def test_completions_know_its_names(eastgate: Run) -> None:
    assert "complete" in eastgate("completion", "bash").output
    context = click.Context(click.Command("describe"))
    context.params = {"words": ("gl",), "files": ("party.yaml",)}
    assert [item.value for item in kinds_and_names(context, click.Argument(["words"]), "c")] == ["cart"]


def test_the_catalogue_has_a_chapter_for_it() -> None:
    assert GUEST in all_codes()
    assert chapters()["Guest lists"] == (codes,)


# Enforcing


@pytest.mark.real
def test_real_proxies_enforce_it() -> None:
    def read(settings: Settings) -> Authority:
        reading = read_text("party.yaml", PARTY.read_text(), positioned=dialects.reads)
        return Authority(sort_documents(reading.documents, settings, reading.reporter), settings)

    async def make() -> list[bool]:
        questions = [Question.of(f"sa:shop/{who}", "pod:shop/cart", port=8080) for who in ("web", "thief")]
        async with LocalMesh(read, Settings(), MeshOptions(name=f"t{os.getpid()}-toy")) as mesh:
            calls = [call for question in questions for call in await make_calls(mesh, question)]
            assert all(call.agrees for call in calls)
            logged = [call.observation.decision for call in calls if call.observation is not None]
            assert any("GuestList" in str(decision) for decision in logged), logged
            return [call.allowed for call in calls]

    assert asyncio.run(make()) == [True, False]


@pytest.mark.real
def test_up_call_and_why_as_people_run_them(tmp_path: Path) -> None:
    program = [sys.executable, str(Path(__file__).with_name("program.py"))]
    source = tmp_path / "party"
    source.mkdir()
    shutil.copy(PARTY, source)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*program, *words], cwd=tmp_path, capture_output=True, text=True, check=False)

    with up(tmp_path, name="party", source=source, program=program) as running:
        let_in = run("call", "--name", "party", "--from", "sa:shop/web", *CALL)
        assert let_in.returncode == 0, let_in.stdout + let_in.stderr
        assert "GuestList/shop/cart" in let_in.stdout
        assert run("call", "--name", "party", "--from", "sa:shop/thief", *CALL).returncode == 1
        assert "GuestList/shop/cart" in run("why", "--name", "party", "--last").stdout
        running.edit("party.yaml", "guests: [web]", "guests: [web, thief]")
        assert "GuestList/shop/cart" in running.until("enforced")["changed"]
        assert run("call", "--name", "party", "--from", "sa:shop/thief", *CALL).returncode == 0
