"""Record the answers of Authorino's languages for tests without them: `python -m tests.expressions.record`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tests.expressions import rego_calls
from tests.expressions.authorino import Upstream, running

_TESTS = Path(__file__).parents[1]
SELECTORS = _TESTS / "dialects" / "kuadrant" / "authorino" / "gjson" / "vectors.json"
CEL_TEXTS, CEL = (Path(__file__).with_name(name) for name in ("cel.txt", "cel.json"))
REGO_CALLS, REGO_MODULES = (Path(__file__).with_name(name) for name in ("rego_calls.json", "rego_modules.json"))
MODULES = Path(__file__).with_name("modules.rego")
INPUT: dict[str, object] = {
    "method": "GET",
    "roles": ["dev", "admin"],
    "user": {
        "name": "alice",
        "age": 20,
        "banned": False,
        "nothing": None,
        "phone": "18abc",
        "tags": ["x", "y"],
        "city": "Z\u00fcrich",
    },
    "matrix": [[1, 2], [3, 4]],
    "indexes": [2, 1, 0],
}
DOCUMENT: dict[str, object] = {
    "request": {
        "method": "GET",
        "path": "/a/b?x=1",
        "headers": {"x-user": "joe", ":path": "/a"},
        "size": 42,
        "time": {"seconds": 1700000000, "nanos": 5},
    },
    "auth": {
        "identity": {
            "sub": "john",
            "n": 42,
            "f": 1.5,
            "big": 1e21,
            "neg": -3,
            "zero": 0,
            "t": True,
            "nul": None,
            "empty": "",
            "groups": ["admin", "dev"],
            "nums": [1, 2, 3],
            "objs": [{"a": 1}, {"a": 2, "b": "x"}],
            "o": {"k": "v", "n": {"m": 1}},
            "s": "h\u00e9llo w\u00f6rld",
            "mixed": [1, "a", True, None],
            "date": "2026-01-02T03:04:05Z",
            "dur": "1h",
        }
    },
    "source": {"address": "10.0.0.1"},
    "destination": {},
    "metadata": {},
}


def selectors(upstream: Upstream) -> None:
    """Ask for every selector of the file again. A selector that makes the original panic is left out."""
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


def cel(upstream: Upstream) -> None:
    """Ask for every expression of the list, on one document."""
    answers = ((text, upstream.cel(text, DOCUMENT)) for text in CEL_TEXTS.read_text(encoding="utf-8").splitlines())
    rows = ([text, answer["value"] if "value" in answer else _no_answer(answer)] for text, answer in answers)
    head = {"answers of": "CEL as Authorino v0.27.0 runs it; no answer: refused when it is read, or an error"}
    CEL.write_text(_object({**head, "rows": _lines(((None, row) for row in rows), "[]")}), encoding="utf-8")


def calls(upstream: Upstream) -> None:
    """Ask for calls of all built-in functions. Record the value of each in an array, or nothing if it errs."""
    rows: list[object] = []
    for each in rego_calls.CALLS.values():
        rules = "".join(f"r{at} = [x | x := {call}]\n" for at, call in enumerate(each))
        answer = upstream.rego(f"package p\n{rego_calls.HEAD}{rules}", "x = data.p", rego_calls.INPUT)
        if "bindings" in answer:
            rows += ([call, answer["bindings"]["x"][f"r{at}"]] for at, call in enumerate(each))
        else:  # one value cannot be written as JSON
            for call in each:
                one = upstream.rego(
                    f"package p\n{rego_calls.HEAD}r = [x | x := {call}]", "x = data.p.r", rego_calls.INPUT
                )
                rows += [[call, one["bindings"]["x"]]] if "bindings" in one else []
    head = {"answers of": "OPA v1.4.0, as Authorino v0.27.0 has it"}
    REGO_CALLS.write_text(_object({**head, "rows": _lines(((None, row) for row in rows), "[]")}), encoding="utf-8")


def modules(upstream: Upstream) -> None:
    """Ask for each module whether it allows."""
    rows = []
    for module in MODULES.read_text(encoding="utf-8").split("---\n"):
        text = f"package p\ndefault allow = false\n{module}"
        answer = upstream.rego(text, 'allow = object.get(data.p, "allow", null)', INPUT)
        if "object.get: invalid" in answer.get("refused", ""):  # Authorino's query accepts no module with functions
            answer = upstream.rego(text, "allow = data.p.allow", INPUT)
        rows.append([module, answer["bindings"]["allow"] if "bindings" in answer else _no_answer(answer)])
    head = {"answers of": "OPA v1.4.0, as Authorino v0.27.0 has it; no answer: refused when it is read, or an error"}
    REGO_MODULES.write_text(_object({**head, "rows": _lines(((None, row) for row in rows), "[]")}), encoding="utf-8")


def _no_answer(answer: dict[str, object]) -> dict[str, str]:
    return {"no answer": "refused" if "refused" in answer else "error"}


def _object(members: dict[str, object]) -> str:
    """Return an object with one member for each line. Members that are text already stay."""
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
        cel(authorino)
        calls(authorino)
        modules(authorino)
