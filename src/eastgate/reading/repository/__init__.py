"""The environments of a repository: the manifests for each place that it deploys to."""

from __future__ import annotations

from eastgate.reading.repository.finding import find_environments
from eastgate.reading.repository.model import (
    ChartRender,
    EntryKind,
    Environment,
    Files,
    KustomizeBuild,
    LeftOut,
    Part,
    RepositoryOptions,
    Undeployed,
)
from eastgate.reading.repository.variables import may_substitute, substitute

__all__ = [
    "ChartRender",
    "EntryKind",
    "Environment",
    "Files",
    "KustomizeBuild",
    "LeftOut",
    "Part",
    "RepositoryOptions",
    "Undeployed",
    "find_environments",
    "may_substitute",
    "substitute",
]
