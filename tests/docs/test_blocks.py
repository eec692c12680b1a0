"""Reading console blocks, and comparing their output with the printed output."""

from __future__ import annotations

import pytest

from tests.docs.blocks import steps, with_outputs
from tests.docs.comparing import is_same, shortened

PAGE = """# A page

```console
$ one \\
    --more
first
second

$ cat > file <<'END'
$ not a command
END
$ three
```

```sh
$ not run
```

```console up
enforced in 3 ms: a policy
```
"""


def test_a_block_is_commands_each_with_its_output() -> None:
    assert [(step.command, step.output) for step in steps(PAGE)] == [
        ("one \\\n    --more", "first\nsecond"),
        ("cat > file <<'END'\n$ not a command\nEND", ""),
        ("three", ""),
        (None, "enforced in 3 ms: a policy"),
    ]


def test_outputs_are_replaced_where_they_stand() -> None:
    one, _, three, up = steps(PAGE)
    changed = with_outputs(PAGE, {one: "", three: "new", up: "a\nb"})
    assert [step.output for step in steps(changed)] == ["", "", "new", "a\nb"]
    before = [step.output for step in steps(PAGE)]
    assert with_outputs(changed, dict(zip(steps(changed), before, strict=True))) == PAGE


SAME = [
    ("", ""),
    ("a\n\nb", "a\n\nb\n"),
    ("ready, in 259 ms", "ready, in 3 ms"),
    ("at 2026-11-15T10:36:02.769Z", "at 2027-01-01T00:00:00Z"),
    ('{"seconds": 17, "nanos": 4}', '{"seconds": 1794774001, "nanos": 447209119}'),
    ("curl/7.88.1", "curl/8.1"),
    ("a   ", "a"),
    ("a\n  …", "a\nb\nc"),
    ("a\n…\nd", "a\nb\nc\nd"),
    ("…\nd", "d"),
    ('{"a": 1, …}', '{"a": 1, "b": 2}'),
    ("x  127.64.0.2  y", "x  127.64.0.2    y"),
]
OTHERS = [
    ("", "a"),
    ("a", ""),
    ("a", "a\nb"),
    ("a\nb", "a"),
    ("259 ms", "259 bytes"),
    ("a  b", "a   b"),
    ("a\n…\nd", "a\nb\nc"),
    ("a.c", "abc"),
]


@pytest.mark.parametrize(("written", "printed"), SAME)
def test_what_differs_from_run_to_run_is_the_same(written: str, printed: str) -> None:
    assert is_same(written, printed)


@pytest.mark.parametrize(("written", "printed"), OTHERS)
def test_anything_else_is_not(written: str, printed: str) -> None:
    assert not is_same(written, printed)


def test_some_lines_of_a_text() -> None:
    assert is_same("b\nc", "a\nb\nc\nd", anywhere=True)
    assert not is_same("b", "ab\nc", anywhere=True)
    assert not is_same("", "a", anywhere=True)


def test_what_a_page_left_out_at_the_end_stays_out() -> None:
    assert shortened("a\n  …", "x\ny\nz\n") == "x\n  …"
    assert shortened("a", "x\ny  \n") == "x\ny"
    assert shortened("a", "") == ""
