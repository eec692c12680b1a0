"""Record what Authorino's languages answer, for the tests that run without them: `python -m tests.expressions.record`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tests.expressions.authorino import Upstream, running

_TESTS = Path(__file__).parents[1]
SELECTORS = _TESTS / "gjson" / "vectors.json"


def selectors(upstream: Upstream) -> None:
    """Ask for every selector of the file again. One that makes the original panic is left out."""
    recorded = json.loads(SELECTORS.read_text(encoding="utf-8"))
    rows = []
    for document, path, *_ in recorded["vectors"]:
        answer = upstream.select(path, recorded["documents"][document])
        if "error" not in answer:
            rows.append([document, path, *(answer[column] for column in ("exists", "text", "raw", "texts"))])
    head = {"answers of": "github.com/tidwall/gjson v1.14.0, with the modifiers of Authorino v0.27.0"}
    written = {**head, "columns": recorded["columns"], "documents": _lines(recorded["documents"].items(), "{}")}
    written["vectors"] = _lines(((None, row) for row in rows), "[]")
    SELECTORS.write_text(_object(written), encoding="utf-8")


def _object(members: dict[str, object]) -> str:
    """An object with one member a line, in which what is text already stays."""
    lines = (
        f"  {json.dumps(name)}: {value if isinstance(value, _Written) else json.dumps(value)}"
        for name, value in members.items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


class _Written(str):
    """JSON text."""


def _lines(items: Iterable[tuple[str | None, object]], brackets: str) -> _Written:
    lines = (f"    {'' if key is None else json.dumps(key) + ': '}{json.dumps(value)}" for key, value in items)
    return _Written(brackets[0] + "\n" + ",\n".join(lines) + "\n  " + brackets[1])


if __name__ == "__main__":
    with running() as authorino:
        selectors(authorino)
