"""Rules for the whole repository: files, links, headings, and names of classes."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from eastgate.basics.diagnostics import Code
from eastgate.cli.catalogue import all_codes, chapters
from tests.docs.generated import generated_pages
from tests.mutants.places import SUBJECTS

ROOT = Path(__file__).parents[1]


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.real
@pytest.mark.parametrize(("folder", "most"), [("src", 400), ("", 600)])
def test_no_file_is_too_long_to_be_read_at_once(folder: str, most: int) -> None:
    long = {
        path.relative_to(ROOT).as_posix(): length
        for path in tracked()
        if path.suffix == ".py" and path.is_relative_to(ROOT / folder)
        if (length := len(path.read_text(encoding="utf-8").splitlines())) > most
    }
    assert not long


def test_codes_are_unique_and_well_formed() -> None:
    codes = [v for m in chapters().values() for one in m for v in vars(one).values() if isinstance(v, Code)]
    distinct = {(code.id, code.title) for code in codes}
    assert [number for number, count in Counter(number for number, _ in distinct).items() if count > 1] == []
    for code in all_codes():
        assert re.fullmatch(r"EG\d{4}", code.id)
        assert code.title
        assert code.explanation.endswith((".", "”", ".)"))


def test_every_code_module_is_in_the_catalogue() -> None:
    named = set()
    for path in (ROOT / "src").rglob("*.py"):
        named |= set(re.findall(r'"(EG\d{4})"', path.read_text(encoding="utf-8")))
    assert named == {code.id for code in all_codes()}


def test_what_is_mutated_and_the_tests_that_must_notice_are_there() -> None:
    assert [name for name, subject in SUBJECTS.items() if not subject.files()] == []
    assert [test for subject in SUBJECTS.values() for test in subject.tests if not (ROOT / test).exists()] == []


def test_every_dependency_has_its_line() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "project" / "dependencies.md").read_text(encoding="utf-8").lower()
    names = re.findall(r'^  "([A-Za-z0-9-]+)>=', project, re.MULTILINE)
    assert names
    assert [name for name in names if f"| {name.lower()} |" not in page] == []


PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "conformance/*.md")
    for page in ROOT.glob(pattern)
)

GENERATED = {ROOT / "docs" / name for name in generated_pages()}


@pytest.mark.parametrize("name", PAGES)
def test_links_in_documents_lead_somewhere(name: str) -> None:
    page = ROOT / name
    text = page.read_text(encoding="utf-8")
    for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", text):
        if not link.startswith(("http://", "https://")):
            target = page.parent / link if link else page
            if target.resolve() in GENERATED:
                continue  # `tests/docs/test_site.py` checks its anchors
            assert target.exists(), link
            assert not anchor or target.suffix != ".md" or anchor in _headings(target), f"{link}#{anchor}"


def _headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    }


# Intended pairs of classes with one name. An end of a question is the reference that a user writes, and an object of
# `eastgate.cluster` is the object with that name. No module of the product imports both.
_ENDS = ("cluster/",)
_DIALECTS = ("dialects/",)  # each dialect has one, in the file of the same name
_SHARED_NAMES = {
    **dict.fromkeys(("Backend", "Gateway", "Pod", "Route", "Service", "ServiceAccount"), _ENDS),
    **dict.fromkeys(("Action", "Policy", "StageName"), _DIALECTS),  # `Policy` is also the protocol of all
    "Authority": ("authority/authority.py", "reports/public.py"),  # the second adds the commands, for Python
    "Call": (
        "dialects/cel/syntax.py",
        "dialects/kuadrant/rego/syntax.py",
    ),  # a node of the syntax trees of both languages
}


def _classes() -> dict[str, list[str]]:
    """Return the modules that define a class of each name."""
    source = ROOT / "src" / "eastgate"
    modules: dict[str, list[str]] = {}
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                modules.setdefault(node.name, []).append(path.relative_to(source).as_posix())
    return modules


def test_no_two_classes_have_one_name() -> None:
    shared = {name: modules for name, modules in _classes().items() if len(modules) > 1}
    assert set(shared) == set(_SHARED_NAMES), "name it by the word of the field, or say why both may have the name"
    for name, modules in shared.items():
        assert all(module.startswith(_SHARED_NAMES[name]) for module in modules), name
        if _SHARED_NAMES[name] is _DIALECTS:
            files = {module.split("/")[-1] for module in modules} - {"base.py"}
            assert len(files) == 1, name


def test_no_module_imports_ends_of_questions_and_objects_of_one_name() -> None:
    ends = {name for name, prefixes in _SHARED_NAMES.items() if prefixes is _ENDS}
    for path in sorted((ROOT / "src").rglob("*.py")):
        imports = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom))
        names = [alias.name for node in imports for alias in node.names if alias.name in ends]
        assert len(names) == len(set(names)), path
