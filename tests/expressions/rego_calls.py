"""Calls of every built-in function with all sorts of arguments, each asked of OPA and recorded."""

from __future__ import annotations

import itertools
import random
from typing import Final

from eastgate.dialects.kuadrant.rego.functions.registry import REGISTERED

__all__ = ["CALLS", "HEAD", "INPUT"]

_VALUES: Final[dict[str, list[object]]] = {
    "null": [None],
    "boolean": [True, False],
    "number": [0, 1, -1, 2, 3, 10, 16, 255, 0.5, -2.5, 1.5, 0.1, 0.2, 100.0, 1e-7, 1700000000123456789, 1e21],
    "string": [
        *(
            "",
            "a",
            "abc",
            "A",
            "\u00c4\u00d6",
            "\u00df",
            "\u65e5\u672c",
            "\U0001f600a",
            " x ",
            "\n tab\t",
            "a,b",
            "a.b.c",
        ),
        *("18", "18abc", "0x1F", " 12 ", "1e5", "-3", "0.5", "1_000", "Inf", "NaN", "true", "null", "%41%2F", "%zz"),
        *("a b+c%20&d=1", "YWJj", "YWI=", "YWI", "-_8", "aGVsbG8gd29ybGQ=", "1.2.3", "1.2.3-rc1", "1.10.0", "v1.2.3"),
        *("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5+02:00", "2026-02-30T00:00:00Z", "1h2m3s", "-1.5h", "3x", "0"),
        *("10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", "::1", "fe80::/10", "::ffff:10.0.0.1", "10.0.0.0/33", "^a.*c$", "("),
        *(
            "[a-z]+",
            "a*",
            "*.com",
            "x.com",
            "**",
            "a?c",
            '{"a": [1, 2.50]}',
            "[1,2",
            "deadbeef",
            "xyz",
            "%s=%d",
            "%v %v",
        ),
        *("UTC", "America/New_York", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.YWJj", "<&>"),
    ],
    "array": [
        *([], [1, 2, 3], [3, 1, 2], ["b", "a"], [1, "a"], [True, False], [True], [None, 1, "a", [1], {"a": 1}], ["/"]),
        *([{"a": 1}, {"b": {"c": 2}}], ["abc", "abd"], [0.5, 1], [1, 2], [1700000000000000000, "America/New_York"]),
    ],
    "object": [
        *({}, {"a": 1}, {"a": 1, "b": {"c": 1, "d": [1, 2]}}, {"b": {"c": 2, "e": 3}}, {"a": "x", "b": ["y", "z"]}),
        *({"z": 1, "a": 2}, {"a": ["b"], "b": ["c"], "c": []}, {"a": "1", "b": "2"}),
    ],
    "set": [[], [1, 2, 3], ["a", "b"], ["b", "c"], [1, "a"], [True], ["abc"]],
}
_POOL: Final = [(kind, value) for kind, values in _VALUES.items() for value in values]
_SIGNS: Final = {
    "plus": "+",
    "minus": "-",
    "mul": "*",
    "div": "/",
    "rem": "%",
    "and": "&",
    "or": "|",
    "internal.member_2": "in",
    "equal": "==",
    "neq": "!=",
    "lt": "<",
    "lte": "<=",
    "gt": ">",
    "gte": ">=",
}
_MOST: Final = 30
_SMALL: Final = {"numbers.range"}  # OPA would create arrays of any size

HEAD: Final = "import future.keywords.in\nany_type(x) = x { true }\n"
INPUT: Final = {"values": [value for _, value in _POOL]}


def _written(at: int) -> str:
    """Return an argument whose type OPA cannot know before."""
    if _POOL[at][0] == "set":
        return f"any_type({{item | item := input.values[{at}][_]}})"
    return f"input.values[{at}]"


def _call(name: str, arguments: tuple[int, ...]) -> str:
    written = [_written(at) for at in arguments]
    if name in _SIGNS:
        return f" {_SIGNS[name]} ".join(written)
    return f"{name}({', '.join(written)})"


def _calls(name: str) -> list[str]:
    chance = random.Random(name)  # noqa: S311 - the same for each run
    fitting = [
        [at for at, (kind, _) in enumerate(_POOL) if possible is None or kind in possible]
        for possible in REGISTERED[name].accepts
    ]
    if name in _SMALL:
        fitting = [[at for at in one if isinstance(_POOL[at][1], int) and abs(_POOL[at][1]) < 300] for one in fitting]  # type: ignore[arg-type]
    every = list(itertools.islice(itertools.product(*fitting), 20_000))
    chosen = every if len(every) <= 3 * _MOST else chance.sample(every, _MOST)
    others = [] if name in _SMALL else [tuple(chance.randrange(len(_POOL)) for _ in fitting) for _ in range(_MOST // 5)]
    return [_call(name, arguments) for arguments in dict.fromkeys([*chosen, *others])]


CALLS: Final = {name: _calls(name) for name in sorted(REGISTERED)}
