"""Environments and their parts.

A repository deploys to several places. The objects of one place are an environment: plain manifests, kustomizations to
build, and charts to render. Objects of different environments never meet.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from eastgate.basics.records import dataclass

_LOCAL = "config.kubernetes.io/local-config"
_OF_FLUX = "kustomize.toolkit.fluxcd.io/"
_OF_ARGO = "argocd.argoproj.io/"
_SKIPPED_HOOKS = {
    "PostDelete",
    "PreDelete",
    "Skip",
    "SyncFail",
}  # hooks of Argo CD that a successful sync does not apply

if TYPE_CHECKING:
    from eastgate.reading.manifests.document import Document
    from eastgate.reading.manifests.node import Plain  # that module imports environments itself
    from eastgate.reading.repository.builds import SharedBuilds


CHARTS_NOT_FETCHED: Final = "charts are not fetched"
NOT_HERE: Final = "they are not in this repository"


class EntryKind(StrEnum):
    """The tool whose file declares an environment."""

    FLUX = "Flux"
    ARGO = "Argo CD"
    KUSTOMIZATION = "Kustomize"
    CHART = "Helm"
    SKAFFOLD = "skaffold"
    FOLDER = "manifests"


@dataclass(frozen=True, slots=True)
class Files:
    """Plain manifests. Objects without a namespace are in `default_namespace`."""

    paths: tuple[str, ...]
    default_namespace: str | None = None


@dataclass(frozen=True, slots=True)
class KustomizeBuild:
    """A kustomization to build.

    `namespace` overrides the namespace of its objects, as Flux's `targetNamespace` does. Objects without one after the
    build are in `default_namespace`. `overlay` has fields of a kustomization to add, such as patches; the paths of its
    `components` are relative to `folder`. A folder without a kustomization is built of `resources`: whole paths of
    files, and of folders of kustomizations, from which Flux generates a kustomization.

    With `substitute`, `variables` are filled in afterwards. The values of `hidden` variables are unknown, for example
    in an encrypted Secret. None means every name that is not in `variables`: not even the default of `${VAR:=default}`
    is certain to be its value.
    """

    folder: str
    namespace: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    substitute: bool = False
    overlay: Mapping[str, Plain] = field(default_factory=dict)
    default_namespace: str | None = None
    resources: tuple[str, ...] = ()
    hidden: tuple[str, ...] | None = ()


@dataclass(frozen=True, slots=True)
class ChartRender:
    """A Helm chart to render. Later `value_files` win over earlier ones, and `values` win over `value_files`."""

    folder: str
    release: str
    namespace: str | None = None
    value_files: tuple[str, ...] = ()
    values: tuple[Mapping[str, Plain], ...] = ()


Part: TypeAlias = Files | KustomizeBuild | ChartRender


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part of an environment that is not read: its name, its place, and the reason.

    `can_decide` is False only if no answer can depend on it. `reason` is the common part of the reasons of several
    parts; empty if `why` adds nothing to it.
    """

    what: str
    where: str
    why: str
    can_decide: bool = True
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.what}{f' ({self.where})' if self.where else ''}: {self.why}"

    def to_json(self) -> dict[str, object]:
        """Return plain data: an entry of `leftOut`."""
        return {"what": self.what, "where": self.where, "why": self.why, "canDecide": self.can_decide}


@dataclass(frozen=True, slots=True)
class RepositoryOptions:
    """The `helm` program, and files with values that override all others."""

    helm: str | None = None
    helm_values: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Undeployed:
    """The manifests of a folder that none of its environments deploys.

    `documents` are its objects that could matter to an answer; None until they are read.
    """

    files: tuple[str, ...] = ()
    documents: list[Document] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """An environment of a repository. It can be used as a path, in the place of its folder `root`.

    `entry` is the file or folder that declares it. Objects without a namespace are in `namespace`. `options` are the
    options of the search and of the builds. The environments of a folder share `undeployed`.
    """

    name: str
    kind: EntryKind
    root: str
    entry: str
    parts: tuple[Part, ...]
    namespace: str | None = None
    left_out: tuple[LeftOut, ...] = ()
    options: RepositoryOptions = field(default_factory=RepositoryOptions)
    undeployed: Undeployed = field(default_factory=Undeployed)

    @classmethod
    def of_kustomization(cls, folder: str) -> Environment:
        """Return the environment of one kustomization, without the rest of its repository."""
        name = os.path.normpath(folder)
        return cls(name, EntryKind.KUSTOMIZATION, folder, folder, (KustomizeBuild(name),))

    charts: tuple[str, ...] = ()
    """The folders of all charts of the repository, for dependencies of charts."""
    shared: SharedBuilds | None = field(default=None, repr=False)
    """The builds that it shares with other environments; None if it is read alone."""

    def applies(self, metadata: Mapping[str, Plain]) -> bool:
        """Return whether its tool applies an object with this metadata, and keeps it in the cluster."""
        labels, annotations = (
            value if isinstance(value := metadata.get(key), dict) else {} for key in ("labels", "annotations")
        )
        if self.kind is EntryKind.FLUX:
            is_local = str(annotations.get(_LOCAL, "false")).lower() != "false"
            is_ignored = str(annotations.get(f"{_OF_FLUX}ssa")).lower() == "ignore"
            disabled = (place.get(f"{_OF_FLUX}reconcile") == "disabled" for place in (labels, annotations))
            return not (is_local or is_ignored or any(disabled))
        hook = annotations.get(f"{_OF_ARGO}hook") if self.kind is EntryKind.ARGO else None
        if not isinstance(hook, str):
            return True
        is_deleted = "HookSucceeded" in str(annotations.get(f"{_OF_ARGO}hook-delete-policy"))
        return not is_deleted and not {event.strip() for event in hook.split(",")} <= _SKIPPED_HOOKS

    def __fspath__(self) -> str:
        return self.root

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the arguments with which a command reads this environment."""
        return ("-f", self.root, "--environment", self.name)
