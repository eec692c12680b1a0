"""What the commands that look at a whole cluster cost: `lint` and `describe`, as a user starts them."""

from __future__ import annotations

import json
import resource
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.children import limited
from bench.manifests import manifests_of
from bench.report import Section
from bench.worlds import generate

__all__ = ["COMMANDS", "run"]

# The module that a command stands on, and the ways to ask it about everything, of which the first that it knows counts.
COMMANDS = {
    "lint": ("eastgate.analysis.lint", (("lint", "-f"),)),
    "describe": ("eastgate.analysis.describe", (("describe", "--all", "-f"), ("describe", "-f"))),
}

_USAGE = 2  # what click exits with where it does not know the arguments
_LIMIT = 120.0


def run(*, quick: bool) -> Section:
    """One row for each command."""
    policies = 250 if quick else 12_500
    plan = generate(policies)
    section = Section(
        "Commands that look at everything",
        "CPU seconds of the command in a process of its own, from JSON manifests to what it prints, its start and "
        "reading included. read: a `check` of one question on the same manifests, which does nothing but read and "
        "decide once.",
        ("command", "policies", "pods", "s", "read s", "us per pod, without reading"),
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "all.json"
        items = list(manifests_of(plan))
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
        pod = plan.pods[0]
        ask = ("check", "--from", "sa:team-0/app-0", "--to", f"pod:{pod.namespace}/{pod.name}", "--port", "80", "-f")
        read = _seconds((*ask, str(path)))
        for name, (module, ways) in COMMANDS.items():
            head: list[str | float] = [name, policies, len(plan.pods)]
            if find_spec(module) is None:
                section.rows.append([*head, "not there yet", "", ""])
                continue
            took = next((took for way in ways if isinstance(took := _seconds((*way, str(path))), float)), "not known")
            if isinstance(took, str) or isinstance(read, str):
                section.rows.append([*head, took, read, ""])
            else:
                section.rows.append([*head, took, read, (took - read) / len(plan.pods) * 1e6])
    return section


def _seconds(arguments: tuple[str, ...]) -> float | str:
    """The CPU time of a command, or why there is none."""
    before = _children()
    done = limited("eastgate", *arguments, seconds=_LIMIT)
    if done is None:
        return f"too slow: over {_LIMIT:.0f} s"
    return _children() - before if done.returncode < _USAGE else f"exit code {done.returncode}"


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
