"""Folders with files, and environments made of them."""

from __future__ import annotations

from pathlib import Path

from eastgate import dialects
from eastgate.reading.manifests import Bounds, ReadResult, read
from eastgate.reading.repository import EntryKind, Environment, Part, RepositoryOptions

POLICY = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: web
spec:
  podSelector:
    matchLabels: {app: web}
  ingress:
  - ports:
    - port: 80
"""


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files, by their paths in a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def environment(
    *parts: Part, root: str = ".", namespace: str | None = None, helm: str | None = None, values: tuple[str, ...] = ()
) -> Environment:
    """Return an environment of the working directory."""
    options = RepositoryOptions(helm or "no-such-helm", values)
    return Environment("prod", EntryKind.FLUX, root, root, parts, namespace, options=options)


def built(
    *parts: Part, helm: str | None = None, namespace: str | None = None, bounds: Bounds | None = None
) -> ReadResult:
    """Read an environment of the working directory."""
    return read_environment(environment(*parts, helm=helm, namespace=namespace), bounds)


def read_environment(given: Environment, bounds: Bounds | None = None, *, skim: bool = False) -> ReadResult:
    """Read an environment."""
    return read(
        [given], positioned=dialects.reads, matters=dialects.matters, takes=dialects.takes, bounds=bounds, skim=skim
    )


def names(reading: ReadResult) -> list[str]:
    """Return the namespaces and names of the documents."""
    return sorted(f"{document.home}/{document.name}" for document in reading.documents)


def left_out(reading: ReadResult) -> list[tuple[str, str, str]]:
    """Return the omitted parts, with their places and reasons."""
    return [(left.what, left.where, left.why) for left in reading.unbuilt]


def places(reading: ReadResult, *path: str | int, of: int = 0) -> tuple[str, str]:
    """Return the place of a value of a document, and the text there."""
    span = reading.documents[of].locate(*path)
    return str(span), span.underlined
