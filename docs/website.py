"""Build the documentation site: `make site`. A link or an anchor that leads nowhere fails the build.

The folder `build/site` has the pages that the generator reads (`pages`) and what it writes (`html`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from html import escape
from pathlib import Path, PurePosixPath

DOCS = Path(__file__).parent
ROOT = DOCS.parent

COPIES = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/reporting.md",
    "conformance/README.md": "project/conformance.md",
}
"""Pages that are elsewhere in the repository, and their places on the site."""

_LINK = re.compile(r"(?<!!)\[([^\]\[]*(?:\[[^\]]*\][^\]\[]*)*)\]\(([^()\s#]+)(#[^()\s]*)?\)")
_BAR = r"\|"
_PIPED = re.compile(r"(?<!`)`([^`\n]*\\\|[^`\n]*)`(?!`)")
_COLOR = re.compile(r"\x1b\[[\d;]*m")
_FENCE = re.compile(r"^(```\w+) \w+$", re.MULTILINE)


def stage(folder: Path, generated: Iterable[tuple[str, str]]) -> None:
    """Write every page of the site into a folder: those of `docs`, copies of others, and generated ones."""
    shutil.copytree(DOCS / "images", folder / "images")
    shutil.copytree(DOCS / "style", folder / "style")
    sources = {str(page.relative_to(ROOT)): str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} | COPIES
    for source, place in sources.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        text = _PIPED.sub(_with_bars, _FENCE.sub(r"\1", _with_links(text, source, place)))
        _write(folder / place, text)
    for place, text in generated:
        _write(folder / place, text)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _with_links(text: str, source: str, place: str) -> str:
    """Return a page whose links are those of the site. A link to a file that the site does not have becomes text."""

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        file = os.path.normpath(PurePosixPath(source).parent / target)
        there = COPIES.get(file, file.removeprefix("docs/") if file.startswith("docs/") else None)
        if there is not None:
            return f"[{words}]({os.path.relpath(there, PurePosixPath(place).parent)}{anchor})"
        return words if (ROOT / file).exists() else found[0]

    return _LINK.sub(link, text)


def _with_bars(code: re.Match[str]) -> str:
    r"""Return code with `\|`, which GitHub shows as a bar in tables and the generator does not, as HTML."""
    return f"<code>{escape(code[1].replace(_BAR, '|'), quote=False).replace('|', '&#124;')}</code>"


def build(folder: Path, generated: Iterable[tuple[str, str]]) -> subprocess.CompletedProcess[str]:
    """Build the site in an empty folder, strictly. Return how the generator ended, and what it printed."""
    stage(folder / "pages", generated)
    shutil.copy(DOCS / "zensical.toml", folder)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    built = subprocess.run(  # noqa: S603 - our own command
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    built.stdout = _COLOR.sub("", built.stdout)  # the generator colors each letter by itself
    return built


if __name__ == "__main__":
    from generate import pages  # beside this file

    target = ROOT / "build" / "site"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    built = build(target, pages())
    print(built.stdout if built.returncode else f"the site is in {target / 'html'}")
    sys.exit(built.returncode)
