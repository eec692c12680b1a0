"""Tables in terminals: a row stays together at every width."""

from __future__ import annotations

import pytest

from eastgate.reports.columns import columns, lay_out

ROWS = [
    [
        ["sa:front/web", "sa:front/mobile"],
        ["8080"],
        ["allow if GET", "deny otherwise"],
        ["NetworkPolicy/data/postgres rule 0  policies.yaml:15", "no rule allows it"],
    ],
    [["anyone else"], ["any"], ["deny"], ["no rule allows it"]],
]
WIDE = """\
FROM             PORT  VERDICT         BY
sa:front/web     8080  allow if GET    NetworkPolicy/data/postgres rule 0  policies.yaml:15
sa:front/mobile        deny otherwise  no rule allows it
anyone else      any   deny            no rule allows it"""
BROKEN = """\
FROM             PORT  VERDICT         BY
sa:front/web     8080  allow if GET    NetworkPolicy/data/postgres
                                         rule 0  policies.yaml:15
sa:front/mobile        deny otherwise  no rule allows it
anyone else      any   deny            no rule allows it"""
HEADED = """\
FROM
  PORT  VERDICT         BY
sa:front/web, sa:front/mobile
  8080  allow if GET    NetworkPolicy/data/postgres rule 0
                          policies.yaml:15
        deny otherwise  no rule allows it
anyone else
  any   deny            no rule allows it"""


@pytest.mark.parametrize(
    ("width", "shown"), [(None, WIDE), (120, WIDE), (70, BROKEN), (60, HEADED)], ids=("no limit", "120", "70", "60")
)
def test_a_table_keeps_its_rows_together(width: int | None, shown: str) -> None:
    assert "\n".join(lay_out(columns(["FROM", "PORT", "VERDICT", "BY"], ROWS), width)) == shown


def test_a_line_continues_beside_the_rest_of_the_first_cell() -> None:
    rows = [[["sa:front/web", "sa:front/mobile"], ["allow"], ["NetworkPolicy/data/postgres rule 0"]]]
    assert lay_out(columns(["FROM", "VERDICT", "BY"], rows), 55)[1:] == [
        "sa:front/web     allow    NetworkPolicy/data/postgres",
        "sa:front/mobile             rule 0",
    ]


def test_a_verdict_below_its_callers_has_its_color() -> None:
    shown = lay_out(columns(["FROM", "PORT", "VERDICT", "BY"], ROWS), 60, color=True)
    assert shown[3].startswith("  8080  \033[32mallow\033[0m if GET")
    assert "\033" not in shown[1]
