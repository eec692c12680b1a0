"""The exact finding for each mistake: the code, the place, the underlined text, the message and the help.

The tables are in `findings/*.txt`, one entry for each text:

    > {"a": 1,}
    EG1021 1:8 `,` a `,` cannot stand before a `}`
      = remove the `,`

The text is written with the escapes of Python. `python -m tests.reading.manifests.test_findings` rewrites the tables.
Review their changes like code.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from eastgate.basics.diagnostics import Code, Diagnostic
from eastgate.reading.manifests import codes

from .reading import found

_TABLES = sorted((Path(__file__).parent / "findings").glob("*.txt"))
_CODES = {name: value for name, value in vars(codes).items() if isinstance(value, Code)}


def _encode(text: str) -> str:
    return (
        text.encode("unicode_escape").decode()
        if not text.isascii() or not text.isprintable()
        else text.replace("\\", "\\\\")
    )


def _decode(text: str) -> str:
    return text.encode("latin-1").decode("unicode_escape")


def _told(finding: Diagnostic) -> str:
    where = f"{finding.span.line}:{finding.span.column} `{_encode(finding.span.underlined)}`" if finding.span else "-"
    way_out = "".join(f"\n  = {line}" for line in (finding.help or "").splitlines())
    return f"{finding.code.id} {where} {finding.message}{way_out}"


def _entry(text: str, name: str) -> str:
    return "\n".join([f"> {_encode(text)}", *(_told(finding) for finding in found(text, name))])


def _entries(table: Path) -> list[str]:
    return table.read_text().strip().split("\n\n")


def _name(table: Path) -> str:
    return "f.json" if table.stem == "json" else "f.yaml"


@pytest.mark.parametrize(
    ("name", "entry"),
    [(_name(table), entry) for table in _TABLES for entry in _entries(table)],
    ids=lambda text: text.splitlines()[0],
)
def test_the_finding_for_each_mistake(name: str, entry: str) -> None:
    text = _decode(entry.splitlines()[0].removeprefix("> "))
    assert _entry(text, name) == entry
    assert [_told(f) for f in found(text, name, positioned=True)] == [_told(f) for f in found(text, name)]


def test_every_code_is_shown_in_a_table_or_has_a_test_of_its_own() -> None:
    told = "".join(table.read_text() for table in _TABLES)
    elsewhere = {"UNREADABLE", "TOO_LARGE", "EMPTY_FOLDER", "NOT_UTF8", "ALIAS_BOMB", "TOO_DEEP", "TOO_MANY_FINDINGS"}
    elsewhere |= {"LEADS_OUT", "NOT_A_FILE"}  # tests/attacks/test_files.py
    elsewhere |= {"LEFT_ASIDE", "EMPTY_INPUT", "HELM_CHART", "BAD_PATTERN"} | {"NAME_GENERATED"}  # test_folders.py
    elsewhere |= {"PLACEHOLDER"}  # test_unfilled.py
    elsewhere |= {"KUSTOMIZATION_NAMED", "NO_KUSTOMIZATION", "NOT_DEPLOYED"}  # test_kustomize.py
    assert {name for name, code in _CODES.items() if code.id not in told} == elsewhere


def test_the_catalogue_is_in_order() -> None:
    catalogue = list(_CODES.values())
    ids = [code.id for code in catalogue]
    assert len(set(ids)) == len(ids)
    assert all(code.id.startswith("EG10") and code.title and code.explanation.endswith(".") for code in catalogue)


def _update() -> None:
    for table in _TABLES:
        texts = [_decode(entry.splitlines()[0].removeprefix("> ")) for entry in _entries(table)]
        table.write_text("\n\n".join(_entry(text, _name(table)) for text in texts) + "\n")


if __name__ == "__main__":
    _update()
