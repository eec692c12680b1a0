"""Every code that a diagnostic can have, from the one place where each is defined. The docs are made from it."""

from __future__ import annotations

from types import ModuleType

from eastgate import questions, settings, spelling
from eastgate.cli import options
from eastgate.convert import codes as convert_codes
from eastgate.diagnostics import Code
from eastgate.dialects import DIALECTS
from eastgate.dialects import codes as dialect_codes
from eastgate.dialects.accesspolicy import codes as accesspolicy_codes
from eastgate.dialects.gep3779 import codes as gep3779_codes
from eastgate.dialects.kuadrant import codes as kuadrant_codes
from eastgate.dialects.kuadrant.schemes import codes as scheme_codes
from eastgate.dialects.linkerd import codes as linkerd_codes
from eastgate.dialects.linting import codes as lint_codes
from eastgate.mesh import codes as mesh_codes
from eastgate.schema import codes as schema_codes
from eastgate.sources import codes as source_codes
from eastgate.tables import read as table_reading
from eastgate.targets.envoy import codes as envoy_codes
from eastgate.unconsidered import codes as unconsidered_codes
from eastgate.world import codes as world_codes

__all__ = ["CHAPTERS", "all_codes"]

CHAPTERS: dict[str, tuple[ModuleType, ...]] = {
    "Settings, options, questions and tables": (settings, options, questions, spelling, table_reading),
    "Reading files": (source_codes,),
    "Kubernetes objects": (world_codes,),
    "Policies of any kind": (schema_codes, dialect_codes, unconsidered_codes),
    "GEP-3779": (gep3779_codes,),
    "AccessPolicy": (accesspolicy_codes,),
    "Linkerd": (linkerd_codes,),
    "Kuadrant": (kuadrant_codes, scheme_codes),
    "Lint": (lint_codes, *(module for dialect in DIALECTS for module in dialect.lint().codes)),
    "Convert": (convert_codes,),
    "Enforcement": (envoy_codes, mesh_codes),
}


def all_codes(modules: tuple[ModuleType, ...] | None = None) -> list[Code]:
    """The codes of some modules, or all of them, in order."""
    chosen = modules or tuple(module for chapter in CHAPTERS.values() for module in chapter)
    codes = {value.id: value for module in chosen for value in vars(module).values() if isinstance(value, Code)}
    return [codes[number] for number in sorted(codes)]
