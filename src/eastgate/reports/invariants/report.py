"""The result of a statement as text and as plain data."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from os import PathLike
from pathlib import Path

from eastgate.authority.reading import DocumentSource
from eastgate.basics.records import dataclass
from eastgate.cluster.objects import NAME_LABEL
from eastgate.cluster.question import Question
from eastgate.cluster.unread import Handling
from eastgate.reading.manifests import Node
from eastgate.reports.invariants.future import ImaginedPod
from eastgate.reports.invariants.model import Quantifier, Statement
from eastgate.reports.invariants.objects import Counterexample, StatementFinding, StatementStanding
from eastgate.settings import Settings

_BROKEN = {
    Quantifier.NEVER: "a request that must never be allowed is",
    Quantifier.ALWAYS: "a request that must always be allowed is denied",
    Quantifier.ONLY: "another caller's request is allowed",
}


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """The options with which a command reads the manifests of a statement."""

    manifests: Sequence[str | PathLike[str] | DocumentSource]
    objects: Node | None
    settings: Settings
    unread: Handling
    jwks: Mapping[str, Path] = field(default_factory=dict)
    environment: str | None = None


def headline(statement: Statement, finding: StatementFinding) -> str | None:
    """Return one line with the reason why a statement fails; None if it holds."""
    if finding.standing is StatementStanding.HOLDS:
        return None
    example = finding.counterexample
    if example is None:
        return f"not proven: {finding.why}"
    return f"{_BROKEN[statement.mode]}: {example.question}: {example.reason}"


def lines(finding: StatementFinding, reading: ReadingOptions) -> Iterator[str]:
    """Yield the counterexample as a command, the line that decides it, and the policies to change."""
    example = finding.counterexample
    if example is None:
        return
    for pod, part in ((example.imagined, "a pod that it reaches"), (example.caller, "the caller")):
        if pod is not None:
            yield f"{part} does not exist yet (includeFuture: true): {_described(pod)}"
    if example.account is not None and example.caller is None:
        yield f"the caller does not exist yet (includeFuture: true): a pod of the account {example.account}"
    if example.labels and example.caller is None:
        yield f"the caller's namespace does not exist yet, and would be labelled {_listed(example.labels)}"
    yield command(example.question, reading, example.objects)
    yield from example.lines
    yield _what_to_change(example)


def _described(imagined: ImaginedPod) -> str:
    pod, namespace = imagined.pod, imagined.namespace
    where = f"namespace {pod.namespace}"
    if namespace is not None:
        home = {key: value for key, value in namespace.labels.items() if key != NAME_LABEL}
        where = f"a new namespace with {_listed(home)}"
    return f"a pod with {_listed(pod.labels)} in {where}"


def _listed(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "no labels"


def _what_to_change(example: Counterexample) -> str:
    if example.policy is None and example.verdict == "allow" and example.policies:
        return f"to change: no rule denies it; write one, in one of {', '.join(example.policies)} or beside them"
    if len(example.policies) == 1:
        return f"to change: {example.policies[0]}"
    if example.policies:
        return f"to change: one of {', '.join(example.policies)}"
    return "to change: no policy is about it; write one that is"


def command(question: Question, reading: ReadingOptions, objects: Sequence[object] = ()) -> str:
    """Return a command that explains a request. Objects that are in no file go to its standard input.

    `objects` are those that the request needs beside the manifests.
    """
    words = ["eastgate", "explain"]
    for path in dict.fromkeys(
        path if isinstance(path, DocumentSource) else os.path.normpath(path) for path in reading.manifests
    ):
        words += path.arguments if isinstance(path, DocumentSource) else ["-f", path]
    words += ["--environment", reading.environment] if reading.environment is not None else []
    beside: list[object] = [node.plain() for node in reading.objects or ()]
    beside += objects
    words += ["-f", "-"] if beside else []
    defaults = Settings().to_json()
    for name, value in reading.settings.to_json().items():
        words += ["--set", f"{name}={value}"] if value != defaults[name] else []
    words += ["--unread", reading.unread.value] if reading.unread is not Handling.BY_KIND else []
    for issuer, file in reading.jwks.items():
        words += ["--jwks", f"{issuer}={os.path.normpath(file)}"]
    words += question.arguments
    words += ["--token", question.token] if question.token is not None else []
    line = shlex.join(words)
    if not beside:
        return line
    piped = beside[0] if len(beside) == 1 else {"apiVersion": "v1", "kind": "List", "items": beside}
    return f"printf %s {shlex.quote(json.dumps(piped, ensure_ascii=False))} | {line}"


def finding_to_json(finding: StatementFinding, reading: ReadingOptions) -> dict[str, object]:
    """Return the result of a statement as plain data."""
    example = finding.counterexample
    data: dict[str, object] = {"standing": str(finding.standing), "why": finding.why, "counterexample": None}
    if example is not None:
        data["counterexample"] = {
            "arguments": example.question.arguments,
            "command": command(example.question, reading, example.objects),
            "verdict": example.verdict,
            "reason": example.reason,
            "policy": example.policy,
            "rule": example.rule,
            "file": example.file,
            "line": example.line,
            "toChange": list(example.policies),
            "exists": example.imagined is None and example.caller is None and example.account is None,
            "objects": example.objects,
        }
    return data
