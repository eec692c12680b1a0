"""Findings as SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from urllib.parse import quote

from eastgate._version import __version__
from eastgate.basics.diagnostics import Code, Severity
from eastgate.basics.diagnostics.spans import Span
from eastgate.dialects.linting import Finding
from eastgate.reports.lint.inventory import lint_codes
from eastgate.reports.lint.report import BaselineComparison, fingerprint

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
HOME = "https://eastgate.dev"
CATALOGUE = f"{HOME}/reference/diagnostics/"

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def sarif(
    findings: Sequence[Finding], codes: Mapping[str, Code] | None = None, comparison: BaselineComparison | None = None
) -> dict[str, object]:
    """Return one run. Its rules are these codes, by default those of lint, and the codes found while reading.

    With a comparison, each result states whether the baseline has it.
    """
    rules = {**(lint_codes() if codes is None else codes), **{finding.code.id: finding.code for finding in findings}}
    ordered = sorted(rules)
    driver = {
        "name": "eastgate",
        "version": __version__,
        "informationUri": HOME,
        "rules": [_rule(rules[number]) for number in ordered],
    }
    numbers = {number: index for index, number in enumerate(ordered)}
    results = [_result(finding, numbers[finding.code.id]) for finding in findings]
    if comparison is not None:
        known = set(map(id, comparison.known))
        for finding, result in zip(findings, results, strict=True):
            result["baselineState"] = "unchanged" if id(finding) in known else "new"
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: Code) -> dict[str, object]:
    name = "".join(word.capitalize() for word in re.findall(r"[A-Za-z0-9]+", code.title))
    return {
        "id": code.id,
        "name": name,
        "shortDescription": {"text": code.title},
        "fullDescription": {"text": code.explanation},
        "help": {"text": code.explanation},
        "helpUri": f"{CATALOGUE}{code.id.lower()}/",
        "defaultConfiguration": {"level": _LEVELS[code.severity]},
    }


def _result(finding: Finding, number: int) -> dict[str, object]:
    lines = [
        finding.message,
        finding.environments and f"In: {', '.join(finding.environments)}",
        finding.help and f"Help: {finding.help}",
        finding.example and f"Example: {finding.example}",
    ]
    result: dict[str, object] = {
        "ruleId": finding.code.id,
        "ruleIndex": number,
        "level": _LEVELS[finding.severity],
        "message": {"text": "\n".join(line for line in lines if line)},
        "partialFingerprints": {"eastgate/v1": _fingerprint(finding), "eastgate/v2": fingerprint(finding)},
    }
    if finding.span is not None:
        result["locations"] = [_location(finding.span, finding.subjects)]
    return result


def _location(span: Span, subjects: Sequence[str]) -> dict[str, object]:
    region: dict[str, object] = {"startLine": span.line, "startColumn": span.column}
    if (span.end_line, span.end_column) > (span.line, span.column):
        region |= {"endLine": span.end_line, "endColumn": span.end_column}
    location: dict[str, object] = {
        "physicalLocation": {"artifactLocation": {"uri": _uri(span.file)}, "region": region},
    }
    if subjects:
        location["logicalLocations"] = [{"fullyQualifiedName": subject} for subject in subjects[:10]]
    return location


def _uri(file: str) -> str:
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(os.fsencode(path.as_posix()))


def _fingerprint(finding: Finding) -> str:
    """Return a hash that does not change when lines are added above the finding."""
    text = "\n".join((finding.code.id, finding.message, *finding.subjects[:1]))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
