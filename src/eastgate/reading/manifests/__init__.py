"""Reads manifests: files, folders and standard input become documents with positions."""

from eastgate.reading.manifests.document import Document, ReadResult
from eastgate.reading.manifests.files import ANYWHERE, Bounds, around
from eastgate.reading.manifests.inputs import files_of
from eastgate.reading.manifests.kustomizations import Kustomized
from eastgate.reading.manifests.node import Node, Plain, Scalar
from eastgate.reading.manifests.reader import read, read_objects, read_text
from eastgate.reading.manifests.roots import Roots, read_nodes, read_nodes_text

__all__ = [
    "ANYWHERE",
    "Bounds",
    "Document",
    "Kustomized",
    "Node",
    "Plain",
    "ReadResult",
    "Roots",
    "Scalar",
    "around",
    "files_of",
    "read",
    "read_nodes",
    "read_nodes_text",
    "read_objects",
    "read_text",
]
