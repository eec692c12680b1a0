"""The speed of `eastgate test`, from YAML to results."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from bench.built import Built
from bench.manifests import case_of, manifests_of
from bench.plans import TRUST_DOMAIN
from bench.report import Section
from bench.timing import interleaved
from bench.worlds import ask_some, generate
from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.reading import read_manifests
from eastgate.reports.tables import Table, read_tables, run_tables
from eastgate.settings import Settings

__all__ = ["run"]

_SETTINGS = Settings(trust_domain=TRUST_DOMAIN)


def run(*, quick: bool) -> Section:
    """Measure one table with many cases, on the manifests of a small cluster."""
    cases = 1_000 if quick else 10_000
    with TemporaryDirectory() as folder:
        _write(Path(folder), cases)
        tables: list[Table] = []

        def read() -> None:
            found, reporter = read_tables([Path(folder) / "cases.yaml"], _SETTINGS)
            assert not reporter.errors, reporter.errors[0]
            tables[:] = found

        def build() -> None:
            programs_of(Authority(read_manifests([Path(folder) / "all.yaml"], _SETTINGS))).compile_all()

        def all_of_it() -> None:
            done = run_tables(tables)
            assert not done.failed, next(one.problem for one in done.results if not one.passed)
            assert done.passed == cases

        read_seconds, build_seconds, run_seconds = interleaved(2 if quick else 3, read, build, all_of_it)
    deciding = run_seconds - build_seconds
    whole = read_seconds + run_seconds
    return Section(
        "Decision tables",
        "CPU of `eastgate test` without its start: one table on the manifests of 100 policies and 80 pods. "
        "read: the YAML of the cases. manifests: to a compiled engine. decide: question to compared result.",
        ("cases", "read s", "manifests s", "decide s", "all s", "cases per s", "read us/case", "decide us/case"),
        [
            [
                cases, read_seconds, build_seconds, deciding, whole, cases / whole,
                read_seconds / cases * 1e6, deciding / cases * 1e6,
            ]
        ],
    )  # fmt: skip


def _write(folder: Path, cases: int) -> None:
    built = Built.of(generate(100))
    asks = ask_some(built.plan, built.targeted, cases)
    verdicts = [built.engine.decide(*question) & 1 for question in built.questions(asks)]
    table = {
        "apiVersion": "eastgate.dev/v1alpha1",
        "kind": "DecisionTest",
        "metadata": {"name": "generated"},
        "spec": {
            "manifests": ["all.yaml"],
            "cases": [case_of(ask, "allow" if yes else "deny") for ask, yes in zip(asks, verdicts, strict=True)],
        },
    }
    documents = list(manifests_of(built.plan))
    (folder / "all.yaml").write_text(yaml.dump_all(documents, Dumper=yaml.CSafeDumper), encoding="utf-8")
    (folder / "cases.yaml").write_text(yaml.dump(table, Dumper=yaml.CSafeDumper), encoding="utf-8")
