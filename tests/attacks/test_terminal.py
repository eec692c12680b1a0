"""No text from a file moves a terminal's cursor, sets its title, or forges a line of a CI log.

The tests find commands, options and output formats in the command line itself. So they also attack a new command, or
fail until it has an entry in `_BASES`.
"""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from eastgate.basics.diagnostics.printable import composed, json_text, printable
from eastgate.cli import main
from tests.attacks.terminal import (
    HOSTILE,
    Screen,
    World,
    in_pipes,
    on_a_terminal,
    world,
    wrong,
)
from tests.dialects.istio.log_lines import as_json, envoy
from tests.local.running import EASTGATE, runtime_folder

_QUESTION = ["--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8080"]
_ISTIO = envoy(authority="a\x1b[35m\u202e", path="/\x9b31m\x7f")
_HOSTILE_FIELDS = {**json.loads(as_json()), "path": f"/{HOSTILE}", "authority": HOSTILE, "request_id": HOSTILE}
_BASES: dict[str, list[list[str]]] = {
    "call": [["--from", HOSTILE, "--to", HOSTILE, HOSTILE], ["--from", "a", "--to", "b", "--name", HOSTILE]],
    "check": [
        ["-f", "GOOD", *_QUESTION, "--path", HOSTILE, "--host", HOSTILE, "--header", f"a={HOSTILE}"],
        ["-f", "GOOD", *_QUESTION, "--set", f"{HOSTILE}=a"],
        ["-f", "GOOD", "--from", f"sa:shop/{HOSTILE}", "--to", "pod:shop/payments", "--port", "8443"],
        ["-f", "GOOD", "--from", "anonymous", "--to", f"host:{HOSTILE}"],
        ["-f", "GOOD", "--from", "anonymous", "--to", f"authconfig:shop/{HOSTILE}", "--host", HOSTILE],
        ["-f", "BROKEN", *_QUESTION],
    ],
    "authorizer": [
        ["--strict", "-f", "BROKEN", "--grpc", "127.0.0.1:0"],
        ["-f", "GOOD", "--grpc", HOSTILE],
        ["-f", "GOOD", "--to", HOSTILE, "--grpc", "127.0.0.1:0", "--jwks", HOSTILE],
    ],
    "bootstrap": [["--node", f"shop/{HOSTILE}", "--control-plane", HOSTILE], ["--node", HOSTILE]],
    "completion": [["bash"]],
    "controller": [["--kubeconfig", HOSTILE], ["--kubeconfig", "BROKEN", "--context", HOSTILE]],
    "convert": [["-f", "GOOD", "--to", "istio"], ["-f", "BROKEN", "--to", "linkerd"], ["-f", "GOOD", "--to", HOSTILE]],
    "crds": [["--kind", "AuthorizationPolicy"], ["--kind", HOSTILE]],
    "describe": [
        ["policy", "-f", "GOOD"],
        ["pod", "cart", "-f", "GOOD", "-n", "shop"],
        ["service", "-f", "GOOD"],
        [HOSTILE, HOSTILE, "-f", "GOOD"],
        ["pod", HOSTILE, "-f", "GOOD"],
        ["pod", "-f", "BROKEN"],
    ],
    "diff": [
        ["GOOD", "BROKEN"],
        ["-f", "GOOD", "--with", "TABLE", "--without", HOSTILE],
        ["-f", "GOOD", "--without", "AuthorizationPolicy/shop/cart-from-web"],
        ["GOOD", "BROKEN"],
        ["--git", HOSTILE, "GOOD"],
    ],
    "explain": [
        ["-f", "GOOD", *_QUESTION, "--path", f"/{HOSTILE}", "--method", "GET", "--header", f"a={HOSTILE}"],
        ["-f", "GOOD", *_QUESTION, "--sni", HOSTILE, "--mcp-method", HOSTILE, "--tool", HOSTILE],
        ["-f", "GOOD", *_QUESTION, "--path", HOSTILE, "--host", HOSTILE, "--header", f"a={HOSTILE}"],
        [
            "-f",
            "GOOD",
            "--from",
            f"spiffe://{HOSTILE}",
            "--to",
            "pod:shop/payments",
            "--port",
            "8443",
            "--method",
            "GET",
        ],
        ["-f", "BROKEN", *_QUESTION],
    ],
    "get": [["pods", "-f", "GOOD"], ["policies", HOSTILE, "-f", "GOOD"], ["all", "-f", "GOOD", "-n", HOSTILE]],
    "graph": [
        ["-f", "GOOD", "--why"],
        ["-f", "GOOD", "--by", "app", "--denied"],
        ["-f", "GOOD", "--unused"],
        ["-f", "GOOD", "--from", HOSTILE],
        ["-f", "GOOD", "--tool", HOSTILE],
        ["-f", "BROKEN"],
    ],
    "inject": [["-f", "GOOD"], ["-f", "GOOD", "--control-plane", HOSTILE], ["-f", "BROKEN"]],
    "lint": [["-f", "GOOD"], ["-f", "BROKEN"]],
    "test": [["TABLE", "-v", "--coverage"], ["BROKEN"]],
    "up": [["--strict", "-f", "BROKEN", "--name", "test"], ["-f", "GOOD", "--name", HOSTILE]],
    "version": [[]],
    "why": [
        ["-f", "GOOD", "-"],
        ["-f", "GOOD", HOSTILE],
        ["-f", "BROKEN", "-"],
        ["-f", "GOOD", _ISTIO, "--from", HOSTILE, "--to", "pod:shop/cart"],
        ["-f", "GOOD", _ISTIO, "--to", HOSTILE],
        ["-f", "GOOD", json.dumps({"response_code_details": HOSTILE, "path": HOSTILE})],
        ["-f", "GOOD", f"rbac_access_denied_matched_policy[{HOSTILE}"],
        ["-f", "GOOD", json.dumps(_HOSTILE_FIELDS), "--to", "pod:shop/cart"],
    ],
}
"""For each command, arguments that make it read, decide and report hostile text."""

_PARSERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "sarif": json.loads,
    "yaml": lambda text: list(yaml.safe_load_all(text)),
    "junit": ET.fromstring,
}
_REPEATS_NOTHING = ("completion", "version")


def _command(name: str) -> click.Command:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command


def _forms(name: str) -> list[list[str]]:
    """Return the output formats of a command."""
    for parameter in _command(name).params:
        if parameter.name == "output" and isinstance(parameter.type, click.Choice):
            return [["-o", str(form)] for form in parameter.type.choices]
    return [[]]


_RUNS = [
    pytest.param(name, words, form, id=f"{name}-{place}-{'-'.join(form[1:])}")
    for name in main.list_commands(click.Context(main))
    for place, words in enumerate(_BASES.get(name, []))
    for form in _forms(name)
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module", autouse=True)
def _no_mesh() -> Iterator[None]:
    with runtime_folder():
        yield


def _words(words: list[str], hostile: World) -> list[str]:
    places = {"GOOD": hostile.good, "BROKEN": hostile.broken, "TABLE": hostile.table}
    return [str(places.get(word, word)) for word in words]


def test_every_command_is_attacked() -> None:
    assert set(_BASES) == set(main.list_commands(click.Context(main)))


@pytest.mark.parametrize(("name", "words", "form"), _RUNS)
def test_no_command_prints_hostile_text(name: str, words: list[str], form: list[str], hostile: World) -> None:
    command = [name, *_words(words, hostile), *form]
    commands = form == ["-o", "github"]
    output, errors = in_pipes(command, hostile.folder, hostile.log)
    assert wrong(output + errors, commands=commands) == []
    shown = on_a_terminal(command, hostile.folder, hostile.log)
    assert wrong(shown, terminal=True, commands=commands) == []
    assert shown
    if form[1:] and form[1] in _PARSERS and b"Usage: " not in output + errors:
        _PARSERS[form[1]](output.decode())


@pytest.mark.parametrize("name", [name for name in _BASES if name not in _REPEATS_NOTHING])
def test_the_hostile_text_reaches_the_output_of_each_command(name: str, hostile: World) -> None:
    results = [CliRunner().invoke(main, [name, *_words(words, hostile)], input=hostile.log) for words in _BASES[name]]
    assert any(r"\x1b[35m" in one.output for one in results)


def test_output_for_programs_keeps_the_original_text(hostile: World) -> None:
    good = str(hostile.good)
    listed = CliRunner().invoke(main, ["get", "policies", "-f", good, "-o", "json"]).stdout
    [note, *_] = {one["metadata"]["annotations"]["note"] for one in json.loads(listed)["items"]}
    written = CliRunner().invoke(main, ["get", "policies", "-f", good, "-o", "yaml"]).stdout
    assert {one["metadata"]["annotations"]["note"] for one in yaml.safe_load(written)["items"]} == {note}
    assert note == HOSTILE.replace("\x0b", "")


def test_the_report_of_a_hostile_table_is_xml(hostile: World, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    done = CliRunner().invoke(main, ["test", str(hostile.table), "-o", "junit", "--junit", str(report)])
    cases = ET.fromstring(done.stdout).findall("testsuite/testcase")  # noqa: S314 - our own
    assert r"x\x1b[35my\x1b]0;owned" in cases[-3].attrib["name"]
    assert ET.parse(report).getroot().attrib["tests"] == str(len(cases))  # noqa: S314


# Every option of every command


def _free_text() -> Iterator[tuple[str, click.Parameter]]:
    for name in main.list_commands(click.Context(main)):
        for parameter in _command(name).params:
            if not isinstance(parameter.type, click.Choice) and not getattr(parameter, "is_flag", False):
                yield name, parameter


def _given(parameter: click.Parameter, value: str) -> list[str]:
    return [parameter.opts[-1], value] if isinstance(parameter, click.Option) else [value]


@pytest.mark.parametrize(
    ("name", "parameter"), [pytest.param(*one, id=f"{one[0]}-{one[1].name}") for one in _free_text()]
)
def test_no_option_prints_hostile_text(
    name: str, parameter: click.Parameter, hostile: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORCE_COLOR", "1")
    base = _words(_BASES[name][0], hostile)
    for value in (HOSTILE, f"a={HOSTILE}", f"{HOSTILE}=b", f"@{HOSTILE}", str(hostile.settings)):
        done = CliRunner().invoke(main, [name, *base, *_given(parameter, value)], input=hostile.log)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        results = done.output.encode("utf-8", "surrogateescape")
        assert wrong(results, terminal=True) == []


@pytest.mark.parametrize("word", [HOSTILE, f"--{HOSTILE}", f"--{HOSTILE}=a", f"-{HOSTILE}"])
@pytest.mark.parametrize("name", ["", *_BASES])
def test_no_unknown_argument_prints_hostile_text(name: str, word: str) -> None:
    done = CliRunner().invoke(main, [*([name] if name else []), word])
    assert wrong(done.output.encode("utf-8", "surrogateescape")) == []


# The mesh


def test_a_running_mesh_prints_no_hostile_text(hostile: World) -> None:
    terminal, other_end = pty.openpty()
    environment = {**os.environ, "COLUMNS": "150", "LINES": "30", "TERM": "xterm-256color", "NO_COLOR": ""}
    process = subprocess.Popen(
        [*EASTGATE, "up", "-v", "-f", str(hostile.good), "--name", "hostile"],
        cwd=hostile.folder,
        env=environment,
        stdin=other_end,
        stdout=other_end,
        stderr=other_end,
    )
    os.close(other_end)
    screen = Screen(terminal)
    try:
        screen.wait_for(b"Ctrl-C stops")
        query = ["--name", "hostile", "--from", "sa:shop/cart", "--to", "pod:shop/payments", "--port", "8443"]
        for output in ("text", "json"):
            called = b"".join(
                in_pipes(["call", *query, "/[bold]\u202e\x9b/::error::forged", "-o", output], hostile.folder)
            )
            assert b"payments" in called
            assert wrong(called) == []
        raw = b"".join(
            in_pipes(["call", *query, "--raw", "--data", f"GET /{HOSTILE} HTTP/1.1\r\n\r\n"], hostile.folder)
        )
        assert wrong(raw) == []
        for output in ("text", "json"):
            explained = b"".join(in_pipes(["why", "--name", "hostile", "-o", output], hostile.folder, hostile.log))
            assert wrong(explained) == []
        shown = on_a_terminal(["why", "--name", "hostile"], hostile.folder, hostile.log.splitlines()[-2])
        assert b"forged" in shown
        assert wrong(shown, terminal=True) == []
        (hostile.good / "new\x1b[35m\n::error::.yaml").write_bytes(
            (hostile.broken / os.listdir(hostile.broken)[0]).read_bytes()
        )
        screen.wait_for(b"broken: kept the last good policy")
        process.send_signal(signal.SIGINT)
        shown = screen.all()
        assert b"stopped hostile" in shown
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(terminal)
        (hostile.good / "new\x1b[35m\n::error::.yaml").unlink(missing_ok=True)
    assert wrong(shown, terminal=True, live=True) == []


# The function itself


def test_a_value_stays_on_its_line_and_shows_its_content() -> None:
    assert printable("café 猫 /a?b=c") == "café 猫 /a?b=c"
    assert printable("a\nb\tc\rd") == r"a\nb\tc\rd"
    assert printable("\x1b\x07\x7f\x85\x9b\u202e\u2028\udc9b\U000e0041") == (
        r"\x1b\x07\x7f\x85\x9b\u202e\u2028\udc9b\U000e0041"
    )
    assert printable(printable(HOSTILE)) == printable(HOSTILE)


def test_composed_lines_keep_our_breaks_and_colors_and_nothing_else() -> None:
    assert composed("a\n\tb \x1b[1mc\x1b[0m\x1b[2J", color=True) == "a\n\tb \x1b[1mc\x1b[0m\\x1b[2J"
    assert composed("a \x1b[1mc\x1b[0m") == "a c"
    assert composed("::error::a\n  ::b\na::c ##[d] ##vso[e]\n## f") == (
        "\\x3a:error::a\n  \\x3a:b\na::c \\x23#[d] \\x23#vso[e]\n## f"
    )
    assert composed("\x1b[1m::error::a", color=True) == "\x1b[1m\\x3a:error::a"


def test_json_says_the_same_without_control_characters() -> None:
    text = json_text({HOSTILE: [HOSTILE, "café", "\U0001f600\U000e0041", "\udc9b"]}, indent=2)
    assert wrong(text.encode()) == []
    assert json.loads(text) == {HOSTILE: [HOSTILE, "café", "\U0001f600\U000e0041", "\udc9b"]}
    assert "café" in text
