"""The result of a run as text, as JSON, and as JUnit XML for CI systems."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import groupby

from eastgate.authority.trace_json import origin_to_json
from eastgate.basics.diagnostics.printable import printable
from eastgate.cluster.unread import Handling, describe_unconsidered
from eastgate.reports.explain import explain_rule
from eastgate.reports.invariants.report import ReadingOptions, command, finding_to_json, lines
from eastgate.reports.tables.model import Coverage
from eastgate.reports.tables.run import Result, Run

_GREEN, _RED, _RESET = "\033[32m", "\033[31m", "\033[0m"


def text(run: Run, *, verbose: bool = False, color: bool = False) -> Iterator[str]:
    """Yield failures (with `verbose`, all results), then the uncovered rules, then one line with the counts."""
    for result in run.results:
        if not result.passed:
            yield printable(f"FAIL {result.span.location} {result.table.title}: {result.name}")
            yield printable(f"     {result.problem}")
            yield from (printable(f"     {line}") for line in _more(result))
            if result.cites:
                yield printable(f"     it checks: {result.cites}")
        elif verbose:
            yield printable(f"ok   {result.table.title}: {result.name}")
        if result.passed and result.decision is not None and result.table.unread is Handling.WARN:
            yield from (
                printable(f"note {result.span.location} {line}")
                for line in describe_unconsidered(result.decision.unconsidered)
            )
    if run.coverage is not None:
        yield from _coverage(run.coverage)
    tone, reset = (_RED if run.failed else _GREEN, _RESET) if color else ("", "")
    if run.unread:
        yield f"{tone}{run.unread} table{'' if run.unread == 1 else 's'} could not be read{reset}"
    yield f"{tone}{run.passed} passed, {run.failed} failed{reset}"


def _coverage(coverage: Coverage) -> Iterator[str]:
    missing = coverage.missing
    for origin in missing:
        span = origin.span
        yield printable(f"not exercised: {origin}") + (f" ({span.location})" if span else "")
    yield f"coverage: {len(coverage.rules) - len(missing)} of {len(coverage.rules)} rules ({coverage.percent:.1f} %)"


def to_json(run: Run) -> dict[str, object]:
    """Return the run as plain data."""
    data: dict[str, object] = {
        "passed": run.passed,
        "failed": run.failed,
        "unread": run.unread,
        "results": [_result(result) for result in run.results],
        "diagnostics": [d.to_json() for d in run.diagnostics],
    }
    if run.coverage is not None:
        data["coverage"] = {
            "rules": len(run.coverage.rules),
            "percent": round(run.coverage.percent, 1),
            "missing": [origin_to_json(origin) for origin in run.coverage.missing],
        }
    return data


def _more(result: Result) -> Iterator[str]:
    """Yield the command that asks about a failure, and the rule that decides it."""
    if result.finding is not None:
        yield from lines(result.finding, _reading(result))
    elif result.question is not None:
        yield command(result.question, _reading(result))
        yield from explain_rule(result.decision) if result.decision is not None else ()


def _reading(result: Result) -> ReadingOptions:
    table = result.table
    return ReadingOptions(table.manifests, table.objects, table.settings, table.unread, table.jwks, table.environment)


def _result(result: Result) -> dict[str, object]:
    decision = result.decision
    finding = result.finding
    return {
        **({"statement": finding_to_json(finding, _reading(result))} if finding is not None else {}),
        "table": result.table.name,
        **({} if result.table.environment is None else {"environment": result.table.environment}),
        "case": result.name,
        "command": command(result.question, _reading(result)) if result.question and not result.passed else None,
        "file": result.span.file,
        "line": result.span.line,
        "passed": result.passed,
        "problem": result.problem,
        "verdict": decision.verdict if decision is not None else None,
        "policy": decision.policy if decision is not None else None,
        "unconsidered": [met.to_json() for met in decision.unconsidered.matches] if decision is not None else [],
        "cites": result.cites,
    }


def junit(run: Run) -> str:
    """Return the run as JUnit XML with a suite for each table. XML cannot hold most unprintable characters."""
    root = ET.Element("testsuites", tests=str(len(run.results)), failures=str(run.failed))
    for (file, name), group in groupby(run.results, key=lambda r: (r.span.file, r.table.title)):
        results = list(group)
        failures = sum(1 for result in results if not result.passed)
        suite = ET.SubElement(root, "testsuite", name=printable(name), file=printable(file))
        suite.attrib.update(tests=str(len(results)), failures=str(failures))
        for result in results:
            case = ET.SubElement(
                suite,
                "testcase",
                classname=printable(name),
                name=printable(result.name),
                line=str(result.span.line),
                time=f"{result.seconds:.6f}",
            )
            if result.problem is not None:
                problem = printable(result.problem)
                more = "".join(f"\n{printable(line)}" for line in _more(result))
                ET.SubElement(case, "failure", message=problem).text = f"{result.span.location}: {problem}{more}"
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True)
