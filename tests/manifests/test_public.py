"""What the package offers to the rest of the project."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from eastgate import manifests as sources

_MODULES = [m.name for m in pkgutil.walk_packages(sources.__path__, "eastgate.manifests.") if not m.ispkg]


def test_the_package_offers_this_and_nothing_else() -> None:
    assert sources.__all__ == [
        *["ANYWHERE", "Bounds", "Document", "Kustomized", "Node", "Plain", "ReadResult", "Roots", "Scalar"],
        *["around", "files_of", "read", "read_nodes", "read_nodes_text", "read_objects", "read_text"],
    ]


@pytest.mark.parametrize("name", _MODULES)
def test_every_module_says_what_it_offers(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    assert all(hasattr(module, offered) for offered in module.__all__)
