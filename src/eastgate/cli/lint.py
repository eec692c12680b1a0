"""`lint`: valid policies that are probably mistakes."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from eastgate.basics.diagnostics import Severity, did_you_mean
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.cli.environments import combine
from eastgate.cli.linting import Codes, EnvironmentFindings, find_all, list_lost
from eastgate.cli.options import Sources, cluster_options, more_files, source_options
from eastgate.cli.output import (
    ALLOWED,
    DENIED,
    FROM_WHAT_WAS_READ,
    PARTIAL,
    UNDECIDED,
    colored,
    emit,
    emit_json,
    left_out,
    output_option,
    print_lines,
)
from eastgate.cli.unconsidered import print_notes
from eastgate.cluster.unread.codes import UNREAD_POLICY
from eastgate.cluster.unread.left_out import MOST_LISTED
from eastgate.dialects.linting import enumerated
from eastgate.reading.manifests.codes import LEADS_OUT
from eastgate.reading.repository import LeftOut
from eastgate.reports.lint import Finding
from eastgate.reports.lint.report import (
    Baseline,
    BaselineComparison,
    BaselineError,
    counted,
    github,
    group_findings,
    merge_findings,
    read_baseline,
    singly,
    to_json,
)
from eastgate.reports.lint.report import write_baseline as as_baseline
from eastgate.reports.lint.sarif import CATALOGUE, sarif

_THRESHOLDS = {
    "error": (Severity.ERROR,),
    "warning": (Severity.ERROR, Severity.WARNING),
    "info": tuple(Severity),
    "never": (),
}
_MAX_NAMES = 12  # environments
_EXIT = (
    "Exits with 0 without findings of the severity of --fail-on or higher; 1 with such a finding, including errors in "
    "manifests; 3 without, if a part or a kind of policies could not be read; 2 if nothing could be read."
)
# Findings about unread parts, and not about mistakes
_UNREAD = frozenset({LEADS_OUT, UNREAD_POLICY})


@click.command(epilog=_EXIT)
@source_options(more_files, *cluster_options)
@output_option("text", "json", "sarif", "github", about="Format of the findings; github: annotations of a workflow.")
@click.option(
    "--fail-on",
    type=click.Choice(list(_THRESHOLDS)),
    default="warning",
    show_default=True,
    help="Exit with 1 if a finding has this severity or a higher one.",
)
@click.option(
    "--baseline",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="File of accepted findings. Only other findings are shown, and count for the exit status.",
)
@click.option(
    "--write-baseline",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write all findings to a baseline, and exit with 0.",
)
@click.option("--explain", metavar="CODE", help="Only explain a code, with an example.")
@click.option("--select", multiple=True, metavar="CODE", help="Show only codes with this prefix.")
@click.option("--ignore", multiple=True, metavar="CODE", help="Hide codes with this prefix.")
def lint(
    sources: Sources,
    output: str,
    fail_on: str,
    baseline: str | None,
    write_baseline: str | None,
    explain: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
) -> None:
    """Find mistakes in policies, such as rules without effect.

    Other findings are targets that select nothing, workloads without allowed callers, and misspelt names.
    """
    if explain is not None:
        _explain(explain)
        return
    _ = sources.required_paths
    chosen, dropped = _prefixes(select, "--select"), _prefixes(ignore, "--ignore")
    accepted = _read_baseline(baseline) if baseline is not None else None
    found = find_all(sources, Codes(chosen, dropped))
    merged = merge_findings({name: each.findings for name, each in found.items()})
    if write_baseline is not None and not any(each.has_errors for each in found.values()):
        _write_baseline(write_baseline, merged)
        return
    comparison = BaselineComparison.of(merged, accepted) if accepted is not None else None
    excluded = sum(each.excluded for each in found.values())
    names = tuple(found) if len(found) > 1 else ()
    unbuilt = list(dict.fromkeys(part for each in found.values() for part in each.unbuilt))
    beside = list_lost(found, None if sources.verbose else MOST_LISTED)
    shown = _OutputForm(merged, excluded, comparison, baseline, names, sources.verbose, unbuilt, beside)
    if output == "json" and len(found) > 1:
        emit_json({"environments": {name: shown.within(name, each).to_json() for name, each in found.items()}})
    else:
        _emit(shown, output)
    statuses = {_status(shown.within(name, each), each, fail_on) for name, each in found.items()}
    if statuses != {UNDECIDED}:
        statuses = {PARTIAL if status == UNDECIDED else status for status in statuses}
    sys.exit(combine(statuses, decisive=DENIED))


def _status(shown: _OutputForm, found: EnvironmentFindings, fail_on: str) -> int:
    """Return the exit status for the findings in one environment."""
    if found.is_unanswered:
        return UNDECIDED
    if any(finding.severity in _THRESHOLDS[fail_on] and finding.code not in _UNREAD for finding in shown.new):
        return DENIED
    is_unread = found.has_errors or any(finding.code is UNREAD_POLICY for finding in shown.findings)
    return PARTIAL if is_unread or any(part.can_decide for part in found.unbuilt) else ALLOWED


# Baselines


def _read_baseline(path: str) -> Baseline:
    """Read the accepted findings. A missing file is an error, so that findings are not silently shown as new."""
    try:
        return read_baseline(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}; write it once with --write-baseline {path}"
    except (UnicodeDecodeError, BaselineError) as error:
        message = f"{path} is not a baseline: {error}; write it again with --write-baseline {path}"
    raise click.BadParameter(printable(message), param_hint="--baseline")


def _write_baseline(path: str, findings: Sequence[Finding]) -> None:
    accepted = [finding for finding in findings if finding.code is not UNREAD_POLICY]
    try:
        Path(path).write_text(as_baseline(accepted), encoding="utf-8")
    except OSError as error:
        raise click.BadParameter(
            printable(f"cannot write {path}: {error.strerror}"), param_hint="--write-baseline"
        ) from error
    count = f"{len(accepted):,} finding{'' if len(accepted) == 1 else 's'}"
    print_lines(printable(f"wrote {count} to {path}; give it with --baseline {path}"))


# Explanations


def _explain(number: str) -> None:
    """Print the entry of the catalogue for a code."""
    from eastgate.cli.catalogue import all_codes  # it imports every part of the product

    codes = {code.id: code for code in all_codes()}
    code = codes.get(number.upper())
    if code is None:
        near = did_you_mean(number, codes)
        hint = f"; did you mean {near}?" if near else f"; {CATALOGUE} lists all codes"
        raise click.BadParameter(printable(f"there is no code {number}") + hint, param_hint="--explain")
    print_lines(f"{code.severity}[{code.id}]: {code.title}\n\n{textwrap.fill(code.explanation, 100)}")
    for title, manifest in (("Wrong", code.wrong), ("Right", code.right)):
        if manifest:
            print_lines(f"\n{title}:\n\n{textwrap.indent(manifest.rstrip(), '  ')}")


def _prefixes(values: Sequence[str], option: str) -> tuple[str, ...]:
    """Parse codes, or prefixes of codes, also separated by commas."""
    prefixes = tuple(part.strip().upper() for value in values for part in value.split(",") if part.strip())
    for prefix in prefixes:
        if not re.fullmatch(r"E(G\d{0,4})?", prefix):
            raise click.BadParameter(
                f"`{prefix}` is not a code such as EG6003, or the beginning of one", param_hint=option
            )
    return prefixes


@dataclass(frozen=True, slots=True)
class _OutputForm:
    """The form of the output. `each`: no grouping. `beside` lists parts that could not be read."""

    findings: Sequence[Finding]
    excluded: int
    comparison: BaselineComparison | None = None
    baseline: str | None = None
    environments: tuple[str, ...] = ()
    each: bool = False
    unbuilt: Sequence[LeftOut] = ()
    beside: Sequence[str] = ()

    @property
    def new(self) -> Sequence[Finding]:
        return self.findings if self.comparison is None else self.comparison.new

    def within(self, name: str, found: EnvironmentFindings) -> _OutputForm:
        """Return the output for one environment."""
        compared = self.comparison
        return replace(
            self,
            findings=_in_environment(self.findings, name),
            excluded=found.excluded,
            unbuilt=found.unbuilt,
            comparison=compared
            and replace(compared, new=_in_environment(compared.new, name), known=_in_environment(compared.known, name)),
        )

    def to_json(self) -> dict[str, object]:
        compared = self.comparison
        counts = {} if compared is None else {"baseline": {"known": len(compared.known), "gone": compared.gone}}
        parts = [part.to_json() for part in self.unbuilt]
        lost = {"complete": False, "leftOut": parts} if parts else {}
        return {**to_json(self.new), "excluded": self.excluded, **counts, **lost}


def _in_environment(findings: Sequence[Finding], name: str) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings if not finding.environments or name in finding.environments)


def _emit(shown: _OutputForm, output: str) -> None:
    match output:
        case "json":
            emit_json(shown.to_json())
        case "sarif":
            emit_json(sarif(shown.findings, comparison=shown.comparison))
        case "github":
            for line in github(shown.new, grouped=True):
                emit(line + "\n")
        case _:
            groups = singly(shown.new) if shown.each else group_findings(shown.new)
            for group in groups:
                print_lines(group.shown.render(also=group.also, where=group.where, color=colored()) + "\n")
            print_notes(shown.beside)
            read = f" {FROM_WHAT_WAS_READ}" if shown.unbuilt else ""
            print_lines(counted(groups) + read + _linted(shown) + _known(shown) + left_out(shown.excluded))


def _linted(shown: _OutputForm) -> str:
    """Return a line with the environments of the findings, if there are several."""
    names = shown.environments
    return f"; {len(names)} environments: {enumerated(list(map(printable, names)), _MAX_NAMES)}" if names else ""


def _known(shown: _OutputForm) -> str:
    """Return a line about the findings in the baseline, and whether it can be shortened."""
    if shown.comparison is None:
        return ""
    gone = shown.comparison.gone
    hint = f", {gone:,} of it gone: shorten it with --write-baseline {shown.baseline}" if gone else ""
    return printable(f"; {len(shown.comparison.known):,} in the baseline{hint}")
