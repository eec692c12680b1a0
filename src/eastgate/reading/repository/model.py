"""Environments, and the parts that each is made of.

A repository deploys to several places. What one place gets is an environment: manifests as they are, kustomizations to
build, and charts to render. No object of one environment exists in another.
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
_NEVER = {"PostDelete", "PreDelete", "Skip", "SyncFail"}  # hooks of Argo CD that a good sync does not apply

if TYPE_CHECKING:
    from eastgate.reading.manifests.document import Document
    from eastgate.reading.manifests.node import Plain  # which reads environments itself
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
    """Manifests that are read as they are. Objects without a namespace are in `default_namespace`."""

    paths: tuple[str, ...]
    default_namespace: str | None = None


@dataclass(frozen=True, slots=True)
class KustomizeBuild:
    """A kustomization to build.

    `namespace` overrides that of its objects, as Flux's `targetNamespace` does; objects that have none after the build
    are in `default_namespace`. `overlay` has fields of a kustomization on top of it, such as patches; the paths of its
    `components` are relative to `folder`. A folder without a kustomization is built of `resources`: files, and folders
    of kustomizations, by their whole paths, as Flux generates a kustomization.

    `variables` are filled in afterwards if `substitute` is set. The values of `hidden` variables are set somewhere that
    is not read, such as an encrypted Secret. None means any name that `variables` does not have: even the default of
    `${VAR:=default}` need not be its value.
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
    """A Helm chart to render. Of `value_files`, then `values`, a later one wins."""

    folder: str
    release: str
    namespace: str | None = None
    value_files: tuple[str, ...] = ()
    values: tuple[Mapping[str, Plain], ...] = ()


Part: TypeAlias = Files | KustomizeBuild | ChartRender


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part of an environment that is not read: what it is, where it is named, and why.

    `can_decide` is unset only where no answer can depend on it. `reason` is what the reasons of several parts have in
    common; empty where `why` says nothing else.
    """

    what: str
    where: str
    why: str
    can_decide: bool = True
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.what}{f' ({self.where})' if self.where else ''}: {self.why}"

    def to_json(self) -> dict[str, object]:
        """Return it as plain data: an entry of `leftOut`."""
        return {"what": self.what, "where": self.where, "why": self.why, "canDecide": self.can_decide}


@dataclass(frozen=True, slots=True)
class RepositoryOptions:
    """The `helm` program, and files with values that win over all others."""

    helm: str | None = None
    helm_values: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Undeployed:
    """The manifests of a folder that none of its environments has.

    `documents` are its objects that could matter to an answer; None until they are read.
    """

    files: tuple[str, ...] = ()
    documents: list[Document] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """An environment of a repository. It may stand among paths, in the place of the folder `root` that it is in.

    `entry` is the file or folder that declares it. Objects without a namespace are in `namespace`. `options` are those
    that it was found with, and is built with. `undeployed` is shared by the environments of a folder.
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
        """Return the environment of one kustomization, whatever else its repository has."""
        name = os.path.normpath(folder)
        return cls(name, EntryKind.KUSTOMIZATION, folder, folder, (KustomizeBuild(name),))

    charts: tuple[str, ...] = ()
    """The folders of all charts of the repository, which others may depend on."""
    shared: SharedBuilds | None = field(default=None, repr=False)
    """The builds of this one and others that are read with it; None if it is read alone."""

    def applies(self, metadata: Mapping[str, Plain]) -> bool:
        """Return whether its tool applies an object with this metadata, and leaves it in the cluster."""
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
        return not is_deleted and not {event.strip() for event in hook.split(",")} <= _NEVER

    def __fspath__(self) -> str:
        return self.root

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the arguments of a command that reads the same."""
        return ("-f", self.root, "--environment", self.name)
