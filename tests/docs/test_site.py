"""The documentation site builds without a warning, loads nothing from other hosts, and has every page."""

from __future__ import annotations

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from eastgate import Settings
from eastgate.cli import main
from eastgate.cli.catalogue import all_codes
from tests.docs.blocks import ROOT
from tests.docs.generated import generated_pages, script
from tests.missing import give_up

DOCS = ROOT / "docs"
MAX_WORDS = 2500
PAGES = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("zensical") is None:
        give_up("zensical", "pip install -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    built = script("website").build(folder, generated_pages().items())
    assert built.returncode == 0, built.stdout
    return folder / "html"


@pytest.mark.real
def test_the_site_loads_nothing_from_other_hosts(site: Path) -> None:
    loaded = re.compile(
        r"<(?:script|img|iframe)[^>]*\ssrc=\"?(?:https?:)?//|<link[^>]*rel=\"?stylesheet[^>]*href=\"?(?:https?:)?//"
    )
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    assert [str(page.relative_to(site)) for page in pages if loaded.search(page.read_text(encoding="utf-8"))] == []


@pytest.mark.real
def test_the_search_index_has_the_pages(site: Path) -> None:
    index = next(site.rglob("search*.js*")).read_text(encoding="utf-8")
    assert "reference/diagnostics/eg1201/" in index


def test_every_code_and_command_has_a_page() -> None:
    pages = generated_pages()
    assert {f"reference/diagnostics/{code.id.lower()}.md" for code in all_codes()} <= set(pages)
    for name in main.list_commands(click.Context(main)):
        command = main.get_command(click.Context(main), name)
        assert command is not None
        options = {
            option
            for param in command.params
            if isinstance(param, click.Option) and not param.hidden
            for option in param.opts
        }
        page = pages[f"reference/commands/{name}.md"]
        assert [option for option in options if option not in page] == []


def test_the_page_of_a_code_has_the_text_of_the_catalogue() -> None:
    pages = generated_pages()
    for code in all_codes():
        page = pages[f"reference/diagnostics/{code.id.lower()}.md"]
        assert code.explanation in page
        assert code.wrong.rstrip() in page
        assert code.right.rstrip() in page


def test_the_page_of_settings_has_each_with_its_default() -> None:
    page = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z]\w+)` \| (.*?) \|", page, re.MULTILINE)
    written = {name: re.findall(r"`([^`]*)`", values)[:1] for name, values in rows}
    assert {name: [value] if value else [] for name, value in Settings().to_json().items()} == written


def test_every_page_is_in_the_navigation() -> None:
    def places(part: object) -> list[str]:
        match part:
            case str():
                return [part]
            case dict():
                return [place for inner in part.values() for place in places(inner)]
            case list():
                return [place for inner in part for place in places(inner)]
        raise AssertionError(part)

    navigation = places(tomllib.loads((DOCS / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"])
    assert len(navigation) == len(set(navigation))
    known = {*PAGES, *script("website").COPIES.values(), *generated_pages()}
    assert set(navigation) <= known
    codes = "reference/diagnostics/eg"  # their index leads to them
    assert [page for page in known if page not in navigation and not page.startswith(codes)] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read_in_one_go(name: str) -> None:
    assert len((DOCS / name).read_text(encoding="utf-8").split()) <= MAX_WORDS
