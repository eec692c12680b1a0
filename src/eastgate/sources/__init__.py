"""Reads manifests: files, folders and standard input become documents that know their lines."""

from eastgate.sources.bounds import ANYWHERE, Bounds, around
from eastgate.sources.document import Document, Reading
from eastgate.sources.inputs import files_of
from eastgate.sources.kustomizations import Kustomized
from eastgate.sources.node import Node, Plain, Scalar
from eastgate.sources.reader import read, read_objects, read_text
from eastgate.sources.roots import Roots, read_nodes, read_nodes_text

__all__ = [
    "ANYWHERE",
    "Bounds",
    "Document",
    "Kustomized",
    "Node",
    "Plain",
    "Reading",
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
