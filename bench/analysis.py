"""The cost of the commands that read a whole cluster: `lint`, `describe` and `get`, as a user starts them."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.children import limited
from bench.manifests import manifests_of
from bench.report import Section
from bench.worlds import generate

__all__ = ["run"]

_USAGE_STATUS = 2  # the exit status of click for unknown arguments
_MAX_CPU_SECONDS = 120.0


def run(*, quick: bool) -> Section:
    """Measure each command; one row for each."""
    policies = 250 if quick else 12_500
    plan = generate(policies)
    section = Section(
        "Commands that look at everything",
        "CPU seconds of the command in a process of its own, from JSON manifests to its output, its start and "
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
        for command in (
            ("lint", "--fail-on", "never"),
            ("describe", "pod", pod.name, "-n", pod.namespace),
            ("describe", "namespace", pod.namespace),
            ("get", "policies"),
            ("get", "workloads"),
        ):
            took = _seconds((*command, "-f", str(path)))
            head: list[str | float] = [
                " ".join(word for word in command[:2] if not word.startswith("-")),
                policies,
                len(plan.pods),
            ]
            if isinstance(took, str) or isinstance(read, str):
                section.rows.append([*head, took, read, ""])
            else:
                section.rows.append([*head, took, read, (took - read) / len(plan.pods) * 1e6])
    return section


def _seconds(arguments: tuple[str, ...]) -> float | str:
    """Return the CPU time of a command, or the reason why there is none."""
    before = _children()
    done = limited("eastgate", *arguments, seconds=_MAX_CPU_SECONDS)
    if done is None:
        return f"too slow: over {_MAX_CPU_SECONDS:.0f} s"
    return _children() - before if done.returncode < _USAGE_STATUS else f"exit code {done.returncode}"


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
