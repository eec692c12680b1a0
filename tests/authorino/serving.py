"""The AuthConfigs and Secrets of a decision table on a real Authorino, linked in the order of their age."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from eastgate.reports.tables import Table
from eastgate.settings import Settings
from tests.authorino.requests import Issuers
from tests.authorino.running import Authorino, Manifest
from tests.convert.conversions import converted
from tests.worlds.authconfig_hosts_oracle import Links

GROUP = "authorino.kuadrant.io"
_SERVED = f"{GROUP}/v1beta3"


@dataclass(frozen=True)
class Served:
    """The AuthConfigs of a table by `namespace/name`, and the reasons why some of them are not served.

    `links` are their hosts by the oracle of Authorino's index. They tell which AuthConfig has answered.
    """

    configs: Mapping[str, Manifest]
    problems: Mapping[str, str]
    links: Links


def manifests(table: Table) -> list[Manifest]:
    """Return the objects of a table."""
    plain = table.objects.plain() if table.objects is not None else []
    return [each for each in plain if isinstance(each, dict)] if isinstance(plain, list) else []


def is_config(manifest: Manifest) -> bool:
    return manifest.get("kind") == "AuthConfig" and str(manifest.get("apiVersion")).startswith(f"{GROUP}/")


def name_of(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"{metadata.get('namespace', 'default')}/{metadata['name']}"


def spec_of(config: Manifest) -> Manifest:
    """Return the spec in v1beta3, the only served version. `convert` makes it from other versions."""
    if config["apiVersion"] == _SERVED:
        return config.get("spec") or {}
    (written,) = converted([config], "authconfig-v1beta3", Settings()).written
    spec: Manifest = written["spec"]
    return spec


_YET_TO_COME = "9999"


def _age(config: Manifest) -> tuple[str, str]:
    return str(config["metadata"].get("creationTimestamp", _YET_TO_COME)), name_of(config)


def _links(configs: Mapping[str, Manifest], *, superseding: bool) -> Links:
    linked = []
    for name, config in configs.items():
        namespace, _, own = name.partition("/")
        metadata = {"namespace": namespace, "name": own, "creationTimestamp": _age(config)[0]}
        linked.append({"metadata": metadata, "spec": {"hosts": (config.get("spec") or {}).get("hosts") or []}})
    return Links(linked, superseding=superseding)


def serving(table: Table, authorino: Authorino, issuers: Issuers) -> AbstractContextManager[Served]:
    """Serve the AuthConfigs of a table."""
    return serving_objects(manifests(table), table.jwks, authorino, issuers)


@contextmanager
def serving_objects(
    objects: list[Manifest], jwks: Mapping[str, Path], authorino: Authorino, issuers: Issuers
) -> Iterator[Served]:
    """Serve AuthConfigs, the oldest first, with test issuers instead of their own."""
    configs = {name_of(each): each for each in sorted(filter(is_config, objects), key=_age)}
    secrets = [each for each in objects if each["kind"] == "Secret"]
    namespaces = {name.partition("/")[0] for name in (*configs, *map(name_of, secrets))}
    for namespace in sorted(namespaces):
        held = [each for each in secrets if name_of(each).startswith(f"{namespace}/")]
        authorino.create_namespace(namespace, held)
    problems: dict[str, str] = {}
    for name, config in configs.items():
        namespace, _, own = name.partition("/")
        problem = authorino.create_config(namespace, own, issuers.in_place(spec_of(config), jwks))
        if problem is not None:
            problems[name] = problem
        problems |= authorino.wait_for_configs()  # the next AuthConfig must be younger
    try:
        yield Served(configs, problems, _links(configs, superseding=authorino.supersedes))
    finally:
        hosts = {host for each in configs.values() for host in (each.get("spec") or {}).get("hosts") or ()}
        authorino.delete_configs(sorted(namespaces), sorted(hosts))
        authorino.delete_secrets(sorted(namespaces))
