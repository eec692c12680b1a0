"""The environments of a repository: what each place that it deploys to is made of."""

from __future__ import annotations

from eastgate.reading.repository.model import (
    ChartRender,
    EntryKind,
    Environment,
    Files,
    KustomizeBuild,
    LeftOut,
    Part,
    RepositoryOptions,
)

__all__ = ["ChartRender", "EntryKind", "Environment", "Files", "KustomizeBuild", "LeftOut", "Part", "RepositoryOptions"]
