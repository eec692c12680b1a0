"""Nothing but conversions and the public names knows a dialect by its package, whichever dialects there are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from eastgate.dialects import DIALECTS, registered, rejected

SOURCE = Path(__file__).parents[2] / "src" / "eastgate"
PACKAGES = sorted({dialect.model.__module__.split(".")[2] for dialect in DIALECTS})
ALLOWED = ("dialects/", "convert/", "controller/admission/", "__init__.py")  # admission converts GEP-3779
_HIDDEN = {"__init__.py", "cli/__init__.py", "envoy/config/typed.py"}  # names, verbs, protobufs: imported when needed


def sources() -> list[tuple[str, str]]:
    return [(path.relative_to(SOURCE).as_posix(), path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))]


def test_no_other_module_names_a_dialect() -> None:
    package = rf"({'|'.join(PACKAGES)})\b"
    named = re.compile(rf"eastgate\.dialects\.{package}|eastgate\.dialects import .*\b{package}")
    assert [path for path, text in sources() if named.search(text) and not path.startswith(ALLOWED)] == []


def test_the_import_contract_names_every_dialect() -> None:
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    modules = [module for contract in contracts for module in contract.get("forbidden_modules", ())]
    forbidden = [module for module in modules if module.startswith("eastgate.dialects.")]
    assert sorted(forbidden) == [f"eastgate.dialects.{package}" for package in PACKAGES]


def test_no_import_is_hidden_from_the_contracts() -> None:
    assert {path for path, text in sources() if re.search(r"import_module|__import__", text)} == _HIDDEN


def test_no_kind_is_listed_twice() -> None:
    kinds = [kind.key for dialect in DIALECTS for kind in (*dialect.kinds, *dialect.objects)]
    assert len(kinds) == len(set(kinds)) == len(registered().read)


def test_a_policy_of_no_dialect_is_an_error_and_no_default() -> None:
    assert registered().of_model(rejected.RejectedPolicy) is rejected.DIALECT
    with pytest.raises(TypeError, match="no dialect that is registered has policies of the type object"):
        registered().of_model(object)
