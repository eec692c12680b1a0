"""Reads manifests: files, folders and standard input become documents that know their lines."""

from eastgate.manifests.bounds import ANYWHERE, Bounds, around
from eastgate.manifests.document import Document, ReadResult
from eastgate.manifests.inputs import files_of
from eastgate.manifests.kustomizations import Kustomized
from eastgate.manifests.node import Node, Plain, Scalar
from eastgate.manifests.reader import read, read_objects, read_text
from eastgate.manifests.roots import Roots, read_nodes, read_nodes_text

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
