"""The Python examples of the pages print the documented output."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

_TESTS = re.compile(r"```python pytest\n(.*?)```", re.DOTALL)
_EXAMPLE = re.compile(r"```python\n(.*?)```(?:(?!```).)*?```text\n(.*?)```", re.DOTALL)
EXAMPLES = _EXAMPLE.findall((ROOT / "docs" / "reference" / "python-api.md").read_text(encoding="utf-8"))


@pytest.mark.real
def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    (code,) = _TESTS.findall((ROOT / "docs" / "reference" / "python-api.md").read_text(encoding="utf-8"))
    (tmp_path / "test_policies.py").write_text(code)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "6 passed" in done.stdout, done.stdout


def test_no_example_is_left_out() -> None:
    page = (ROOT / "docs" / "reference" / "python-api.md").read_text(encoding="utf-8")
    assert page.count("```python\n") == len(EXAMPLES)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_the_documented_output(
    number: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, output = EXAMPLES[number]
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    exec(code, {"__name__": "example"})  # noqa: S102 - our own documentation
    assert capsys.readouterr().out == output
