"""AuthConfigs for tests, and questions about them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.authority.reading import read_plain
from eastgate.cluster.question import Question
from eastgate.settings import Settings

GROUP = "authorino.kuadrant.io"
Manifest = dict[str, Any]


def config(name: str, *hosts: str, day: int | None = None, spec: Manifest | None = None) -> Manifest:
    """Return an AuthConfig `namespace/name` that allows every caller."""
    namespace, _, short = name.partition("/")
    created = {} if day is None else {"creationTimestamp": f"2024-01-{day:02}T00:00:00Z"}
    return {
        "apiVersion": f"{GROUP}/v1beta3",
        "kind": "AuthConfig",
        "metadata": {"name": short, "namespace": namespace, **created},
        "spec": {"hosts": list(hosts), "authentication": {"anybody": {"anonymous": {}}}, **(spec or {})},
    }


def authority(*manifests: Manifest, strict: bool = True, **settings: object) -> Authority:
    chosen = Settings.from_mapping(settings)
    return Authority(read_plain(manifests, chosen), strict=strict)


def ask(of: Authority, to: str, host: str | None = None, headers: dict[str, str] | None = None) -> Decision:
    return of.decide(Question.of("anonymous", to, method="GET", path="/", host=host, headers=headers or {}))


def servers(of: Authority, hosts: Iterable[str]) -> dict[str, str | None]:
    """Return the AuthConfig that decides about each host; None if no AuthConfig is found."""
    policies = {host: ask(of, f"host:{host}").policy for host in hosts}
    return {host: policy and policy.removeprefix("AuthConfig/") for host, policy in policies.items()}
