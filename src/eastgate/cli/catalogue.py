"""Every code of diagnostics, each from the module that defines it. The docs are generated from it."""

from __future__ import annotations

from types import ModuleType

from eastgate import dialects, settings
from eastgate.authority import environments, questions, spelling
from eastgate.authority.sources import codes as cluster_codes
from eastgate.basics.diagnostics import Code
from eastgate.cli import crds, options
from eastgate.cluster import codes as world_codes
from eastgate.cluster.unread import codes as unconsidered_codes
from eastgate.control import codes as mesh_codes
from eastgate.convert import codes as convert_codes
from eastgate.convert import kuadrant_codes
from eastgate.dialects import codes as dialect_codes
from eastgate.dialects.linting import codes as lint_codes
from eastgate.envoy.plan import codes as envoy_codes
from eastgate.reading.manifests import codes as source_codes
from eastgate.reading.manifests.shapes import codes as schema_codes
from eastgate.reports.diff import codes as diff_codes
from eastgate.reports.invariants import codes as invariant_codes
from eastgate.reports.tables import read as table_reading


def chapters() -> dict[str, tuple[ModuleType, ...]]:
    """Return the modules that define codes, chapter by chapter, with a chapter for each dialect."""
    return {
        "Settings, options, questions and tables": (
            *(settings, options, questions, spelling, crds, environments),
            *(table_reading, invariant_codes),
        ),
        "Reading files": (source_codes,),
        "Reading a cluster": (cluster_codes,),
        "Kubernetes objects": (world_codes,),
        "Policies of any kind": (schema_codes, dialect_codes, unconsidered_codes),
        **{dialect.name: dialect.codes() for dialect in dialects.DIALECTS},
        "Lint": (lint_codes, *(module for dialect in dialects.DIALECTS for module in dialect.lint().codes)),
        "Diff": (diff_codes,),
        "Convert": (convert_codes, kuadrant_codes),
        "Enforcement": (envoy_codes, mesh_codes),
    }


def all_codes(modules: tuple[ModuleType, ...] | None = None) -> list[Code]:
    """Return the codes of some modules, or all of them, in order."""
    chosen = modules or tuple(module for chapter in chapters().values() for module in chapter)
    codes = {value.id: value for module in chosen for value in vars(module).values() if isinstance(value, Code)}
    return [codes[number] for number in sorted(codes)]
