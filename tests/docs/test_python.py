"""The Python examples of the pages print what the pages say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

_EXAMPLE = re.compile(r"```python\n(.*?)```(?:(?!```).)*?```text\n(.*?)```", re.DOTALL)
EXAMPLES = _EXAMPLE.findall((ROOT / "docs" / "python-api.md").read_text(encoding="utf-8"))


def test_no_example_is_left_out() -> None:
    page = (ROOT / "docs" / "python-api.md").read_text(encoding="utf-8")
    assert page.count("```python\n") == len(EXAMPLES)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_what_the_page_says(
    number: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, output = EXAMPLES[number]
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    exec(code, {"__name__": "example"})  # noqa: S102 - our own documentation
    assert capsys.readouterr().out == output
