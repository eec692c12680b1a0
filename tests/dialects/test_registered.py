"""Only conversions and the public names import a dialect by its package."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from eastgate.dialects import DIALECTS, registered, rejected
from eastgate.dialects.base import NameUse

SOURCE = Path(__file__).parents[2] / "src" / "eastgate"
PACKAGES = sorted({dialect.model.__module__.split(".")[2] for dialect in DIALECTS})
NAMING = ("dialects/", "convert/", "cluster/unread/", "__init__.py")
"""Conversions, the catalogue of kinds that are not read (some share a name), and the public names."""
_HIDDEN = {"__init__.py", "cli/__init__.py", "envoy/config/typed.py"}  # names, verbs, protobufs: imported when needed


def sources() -> list[tuple[str, str]]:
    return [(path.relative_to(SOURCE).as_posix(), path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))]


def test_the_import_contract_counts_every_dialect() -> None:
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text("utf-8"))
    (contract,) = (each for each in project["tool"]["importlinter"]["contracts"] if each["type"] == "named")
    packages = {path.parent.name for path in (SOURCE / "dialects").glob("*/__init__.py")}
    assert sorted(packages - set(contract["shared"])) == PACKAGES


def test_no_other_code_names_a_kind_or_group_of_a_dialect() -> None:
    kinds = [kind for kind in registered().policies.values() if kind.name_use is not NameUse.COMMON]
    names = {kind.kind for kind in kinds} | {kind.group for kind in kinds if kind.served is None}
    found = {
        (path, node.value)
        for path, text in sources()
        if not path.startswith(NAMING)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and node.value in names
    }
    assert found == set()


def test_no_import_is_hidden_from_the_contracts() -> None:
    assert {path for path, text in sources() if re.search(r"import_module|__import__", text)} == _HIDDEN


def test_no_kind_is_listed_twice() -> None:
    kinds = [kind.key for dialect in DIALECTS for kind in (*dialect.kinds, *dialect.objects)]
    assert len(kinds) == len(set(kinds)) == len(registered().read)


def test_a_policy_of_no_dialect_is_an_error_and_no_default() -> None:
    assert registered().of_model(rejected.RejectedPolicy) is rejected.DIALECT
    with pytest.raises(TypeError, match="no dialect that is registered has policies of the type object"):
        registered().of_model(object)
