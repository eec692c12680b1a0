"""The pictures of the pages are the ones that the product draws."""

from __future__ import annotations

from tests.docs.blocks import ROOT
from tests.docs.generated import script


def test_pictures_are_up_to_date() -> None:
    page = (ROOT / "docs" / "guides" / "exploring.md").read_text(encoding="utf-8")
    for file, picture in script("pictures").pictures():
        assert file.read_text(encoding="utf-8") == picture, "run `make docs`"
        assert f"(../images/{file.name})" in page
