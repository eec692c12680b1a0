"""Checkouts with a few files, and the environments in them."""

from __future__ import annotations

from pathlib import Path

from eastgate.basics.diagnostics import Reporter
from eastgate.reading.manifests import Bounds
from eastgate.reading.repository import Environment, RepositoryOptions, find_environments
from tests.reading.repository.building import POLICY, write

KUSTOMIZATION = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"


def kustomization(*resources: str, more: str = "") -> str:
    """Return a kustomization of some resources."""
    return f"{KUSTOMIZATION}resources: [{', '.join(resources)}]\n{more}"


def flux(name: str, path: str, spec: str = "") -> str:
    """Return a Flux Kustomization. The lines of `spec` are fields of it."""
    lines = "".join(f"  {line}\n" for line in spec.splitlines())
    return (
        f"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
        f"metadata: {{name: {name}, namespace: flux-system}}\n"
        f"spec:\n  path: {path}\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n{lines}"
    )


def application(name: str, source: str, namespace: str = "shop") -> str:
    """Return an Application of Argo CD. `source` is a mapping in brackets."""
    return (
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\n"
        f"metadata: {{name: {name}}}\nspec:\n  destination: {{namespace: {namespace}}}\n  source: {source}\n"
    )


def policy(name: str, app: str = "web") -> str:
    """Return a policy."""
    return POLICY.replace("name: web", f"name: {name}").replace("app: web", f"app: {app}")


def found(folder: Path, files: dict[str, str], *paths: str, exclude: tuple[str, ...] = ()) -> list[Environment]:
    """Write files, and return the environments of a folder or of some in it, without any error."""
    write(folder, files)
    reporter = Reporter()
    given = list(paths) or ["."]
    environments = find_environments(given, Bounds.of(given, exclude=exclude), reporter, RepositoryOptions())
    assert not reporter.diagnostics
    return environments


def named(environments: list[Environment]) -> dict[str, Environment]:
    """Return environments by their names."""
    return {environment.name: environment for environment in environments}
