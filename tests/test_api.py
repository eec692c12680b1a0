"""The public Python API: small, sorted, and its documented example runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import eastgate

ROOT = Path(__file__).parents[1]


def test_all_is_sorted_and_complete() -> None:
    assert eastgate.__all__ == sorted(eastgate.__all__)
    for name in eastgate.__all__:
        assert hasattr(eastgate, name)


def test_the_public_names_are_these() -> None:
    assert eastgate.__all__ == [
        "Authority",
        "Decision",
        "Diagnostic",
        "Handling",
        "ManifestError",
        "Manifests",
        "Question",
        "QuestionError",
        "Settings",
        "SettingsError",
        "World",
        "__version__",
        "explain",
        "load",
        "read_manifests",
    ]


def test_the_example_of_the_documentation_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "python-api.md").read_text(encoding="utf-8")
    code, output = re.search(r"```python\n(.*?)```.*?```text\n(.*?)```", page, re.DOTALL).groups()  # type: ignore[union-attr]
    exec(code, {})  # noqa: S102 - our own documentation
    assert capsys.readouterr().out == output


def test_errors_carry_all_diagnostics(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("kind: Pod\n---\napiVersion: v1\nkind: Pod\nmetadata: {}\n")
    with pytest.raises(eastgate.ManifestError) as caught:
        eastgate.load(tmp_path)
    assert len(caught.value.diagnostics) == 3
    assert "error[EG" in str(caught.value)
