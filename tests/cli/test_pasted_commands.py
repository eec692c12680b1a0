"""Printed commands can be pasted, and their output agrees with the line before them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.test_network_invariants import ACCOUNT, POLICIES, TWO_PEERS, state, write

Cli = Callable[..., Result]


def commands(output: str) -> list[str]:
    """Return the commands in an output, each with its piped input."""
    found = (re.search(r"(printf %s .* \| )?\beastgate (check|explain) .*", line) for line in output.splitlines())
    return [match[0] for match in found if match is not None]


def paste(cli: Cli, command: str) -> Result:
    words = shlex.split(command)
    given = None
    if words[0] == "printf":
        given, words = words[2], words[words.index("|") + 1 :]
    assert words[0] == "eastgate"
    return cli(*words[1:], stdin=given)


def pasted(cli: Cli, output: str) -> list[tuple[int, str]]:
    results = [paste(cli, command) for command in commands(output)]
    return [(result.exit_code, result.stdout.partition(" ")[0]) for result in results]


@pytest.mark.parametrize("more", ["", "includeFuture: true"])
def test_the_command_of_a_failing_invariant(cli: Cli, more: str) -> None:
    write(POLICIES if more else TWO_PEERS)
    state(ACCOUNT, more=more)
    assert pasted(cli, cli("test", "i.yaml").stdout) == [(0, "ALLOW")]


ROWS = """\
apiVersion: eastgate.dev/v1alpha1
kind: DecisionTest
metadata: {name: rows}
spec:
  manifests: ["the manifests"]
  settings: {networkPolicies: enforce, trustDomain: td}
  cases:
  - {name: wrong, from: "sa:shop/payments", to: "pod:data/postgres", port: 5432, expect: deny}
  - {name: closed, from: "sa:data/backup", to: "pod:data/postgres", port: 5432, expect: allow}
  - {name: no such pod, from: "sa:data/backup", to: "pod:data/nothing", expect: allow}
"""


def test_a_failing_row_prints_the_line_of_the_policy_and_the_command(cli: Cli) -> None:
    write(TWO_PEERS)
    Path("the manifests").mkdir()
    Path("m.yaml").rename("the manifests/m.yaml")
    Path("t.yaml").write_text(ROWS)
    shown = cli("test", "-f", "t.yaml").stdout
    assert "     eastgate explain -f 'the manifests' --set trustDomain=td --from sa:shop/payments" in shown
    line = 1 + Path("the manifests/m.yaml").read_text().splitlines().index(
        "    - namespaceSelector: {matchLabels: {team: shop}}"
    )
    assert f"NetworkPolicy/data/postgres rule 0 allows:\n       --> the manifests/m.yaml:{line - 1}:5" in shown
    assert pasted(cli, shown) == [(0, "ALLOW"), (1, "DENY"), (2, "")]


def test_objects_of_a_table_are_piped_into_the_command(cli: Cli) -> None:
    write(TWO_PEERS)
    pod = "  objects: [{apiVersion: v1, kind: Pod, metadata: {name: one, namespace: data}}]\n"
    Path("t.yaml").write_text(ROWS.replace('["the manifests"]\n', f"[m.yaml]\n{pod}"))
    shown = cli("test", "t.yaml").stdout
    assert commands(shown)[0].startswith("printf %s ")
    assert pasted(cli, shown)[0] == (0, "ALLOW")


def test_the_example_of_a_change_reads_the_new_side(cli: Cli) -> None:
    write(TWO_PEERS)
    Path("m.yaml").rename("old.yaml")
    write()
    shown = cli("diff", "old.yaml", "m.yaml", "--set", "trustDomain=td").stdout
    assert "example: eastgate check -f m.yaml --set trustDomain=td --from sa:shop/payments " in shown
    assert set(pasted(cli, shown)) == {(1, "DENY")}


@pytest.mark.parametrize("words", [("-f", "m.yaml"), ("m.yaml",)])
def test_the_example_of_a_change_that_is_tried_reads_what_there_is(cli: Cli, words: tuple[str, ...]) -> None:
    write(TWO_PEERS)
    shown = cli("diff", *words, "--without", "NetworkPolicy/data/postgres").stdout
    assert "example: eastgate check -f m.yaml --from " in shown
    assert (0, "ALLOW") in pasted(cli, shown)


def test_the_example_of_a_conversion_reads_what_is_converted(cli: Cli) -> None:
    shop = Path(__file__).parents[2] / "examples" / "shop" / "manifests"
    shown = cli("convert", "--to", "istio", "-f", str(shop), "--verify").stderr
    assert f"example: eastgate check -f {shop} --from sa:monitoring/prometheus" in shown
    assert set(pasted(cli, shown)) == {(0, "ALLOW")}
