"""The scripts of the folder `docs`, which is not a package."""

from __future__ import annotations

import importlib.util
from functools import cache
from types import ModuleType

from tests.docs.blocks import ROOT

__all__ = ["generated_pages", "script"]


@cache
def script(name: str) -> ModuleType:
    """Return a script of `docs` as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def generated_pages() -> dict[str, str]:
    """Return the generated pages of the site, by their paths below `docs`."""
    return dict(script("generate").pages())
