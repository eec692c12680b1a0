"""The pictures of the pages are those that the product draws now."""

from __future__ import annotations

import importlib.util

from tests.docs.blocks import ROOT


def test_pictures_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "exploring.md").read_text(encoding="utf-8")
    for file, picture in module.pictures():
        assert file.read_text(encoding="utf-8") == picture, "run `make docs`"
        assert f"(images/{file.name})" in page
