"""The AuthConfig that serves a host, as in Authorino's index and controller, on plain manifests.

It shares no code with the product. The index is a tree of labels from the right (`pkg/index/index.go`). The controller
links hosts in the order in which the AuthConfigs were created (`controllers/auth_config_controller.go`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Manifest = dict[str, Any]


@dataclass
class Node:
    """A label of host names, with the labels to its left, and the AuthConfig of the name that is complete here."""

    children: dict[str, Node] = field(default_factory=dict)
    config: str | None = None


def _labels(host: str) -> list[str]:
    return host.split(".")[::-1]


class Index:
    """Host names with the AuthConfigs that serve them."""

    def __init__(self) -> None:
        self._root = Node()

    def link(self, host: str, config: str) -> None:
        """Link a host to an AuthConfig."""
        node = self._root
        for label in _labels(host):
            node = node.children.setdefault(label, Node())
        node.config = config

    def find(self, host: str) -> str | None:
        """Return the AuthConfig of the name, or else that of the closest `*` above it."""
        labels = _labels(host)
        way = [self._root]
        for label in labels:
            if label not in way[-1].children:
                break
            way.append(way[-1].children[label])
        is_whole = len(way) == len(labels) + 1
        if is_whole and way[-1].config is not None:
            return way[-1].config
        wildcards = (node.children.get("*") for node in reversed(way))
        return next((each.config for each in wildcards if each is not None and each.config is not None), None)


def name_of(config: Manifest) -> str:
    """Return `namespace/name`."""
    return f"{config['metadata']['namespace']}/{config['metadata']['name']}"


class Links:
    """The hosts of AuthConfigs. The oldest AuthConfig is linked first.

    With `superseding` (`--allow-superseding-host-subsets`), an AuthConfig has only the hosts that it names itself.
    """

    def __init__(self, configs: list[Manifest], *, superseding: bool = False) -> None:
        self._index = Index()
        self._superseding = superseding
        self.linked: dict[str, list[str]] = {}
        self.loose: dict[str, list[str]] = {}
        for config in sorted(configs, key=lambda each: (each["metadata"]["creationTimestamp"], name_of(each))):
            self._add(name_of(config), config["spec"]["hosts"])

    def _add(self, config: str, hosts: list[str]) -> None:
        self.linked[config], self.loose[config] = [], []
        for host in hosts:
            if self._is_taken(host, config):
                self.loose[config].append(host)
                continue
            self._index.link(host, config)
            self.linked[config].append(host)

    def _is_taken(self, host: str, config: str) -> bool:
        holder = self._index.find(host)
        if holder is None or holder == config:
            return False
        return not self._superseding or host in self.linked[holder]

    def serving(self, host: str) -> str | None:
        """Return the AuthConfig for a request: the host is looked up with its port, then without."""
        config = self._index.find(host)
        if config is None and ":" in host:
            return self._index.find(host.split(":")[0])
        return config
