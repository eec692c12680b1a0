"""The public names of the package."""

from __future__ import annotations

from eastgate.reading import manifests as sources


def test_the_package_offers_this_and_nothing_else() -> None:
    assert sources.__all__ == [
        *["ANYWHERE", "Bounds", "Document", "Kustomized", "Node", "Plain", "ReadResult", "Roots", "Scalar"],
        *["around", "files_of", "read", "read_nodes", "read_nodes_text", "read_objects", "read_text"],
    ]
