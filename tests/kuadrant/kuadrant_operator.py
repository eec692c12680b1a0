"""kuadrant-operator's own code as a process, which answers about one cluster after the other."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.programs import find
from tests.worlds.kuadrant_paths_oracle import Condition, Manifest, Rule

_STOP_SECONDS = 15
_CLASS = "istio|"  # every path begins with the GatewayClass
_LOCATOR = "authpolicy.kuadrant.io:"


@dataclass(frozen=True)
class Report:
    """The operator's results for a cluster."""

    paths: dict[str, dict[str, Rule]]  # by the path and the key of the rule
    policies: dict[str, list[Condition]]  # by namespace/name


class KuadrantOperator:
    """A program that folds AuthPolicies and writes their status."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [find("kuadrant")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def report(self, manifests: Iterable[Manifest]) -> Report:
        """Ask about Gateways, routes and AuthPolicies. The Gateways and routes have a status."""
        asked = [manifest for manifest in manifests if manifest["kind"] != "Secret"]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"objects": asked}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        paths = {
            path.removeprefix(_CLASS): {
                key: Rule(rule["value"], rule["source"].removeprefix(_LOCATOR)) for key, rule in rules.items()
            }
            for path, rules in answer["paths"].items()
        }
        policies = {
            name: sorted(Condition(**condition) for condition in conditions)
            for name, conditions in answer["policies"].items()
        }
        return Report(paths, policies)

    def stop(self) -> None:
        """Stop the process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
