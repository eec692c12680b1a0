"""The requests of an account in the audit log of an API server, and the RBAC rules that they did not use."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["AuditedRequest", "audit_options", "audited", "unused"]


@dataclass(frozen=True, slots=True)
class AuditedRequest:
    """One request. `resource` includes the subresource, if any."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    status: int

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}.{self.group} {self.name}{where}: {self.status}"


def audit_options(folder: Path, account: str) -> list[str]:
    """Return the options of an API server that logs the requests of an account `namespace/name`."""
    user = f"system:serviceaccount:{account.replace('/', ':')}"
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": [user]}, {"level": "None"}],
    }
    (folder / "audit-policy.json").write_text(json.dumps(policy))
    return [f"--audit-policy-file={folder / 'audit-policy.json'}", f"--audit-log-path={folder / 'audit.log'}"]


def audited(folder: Path) -> list[AuditedRequest]:
    """Return the requests so far, except those for API discovery."""
    log = folder / "audit.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [request for line in lines for request in _requests(json.loads(line))]


def _requests(event: dict[str, Any]) -> Iterator[AuditedRequest]:
    ref = event.get("objectRef")
    if ref is None:
        return
    resource = "/".join(filter(None, (ref["resource"], ref.get("subresource"))))
    status = (event.get("responseStatus") or {}).get("code", 0)
    details = (ref.get("apiGroup", ""), resource, ref.get("namespace", ""), ref.get("name", ""), status)
    yield AuditedRequest(event["verb"], *details)
    if event["verb"] == "patch" and status == 201:  # applying a new object creates it
        yield AuditedRequest("create", *details)


def unused(rules: Iterable[dict[str, Any]], requests: Iterable[AuditedRequest]) -> set[tuple[str, str, str]]:
    """Return verb, group and resource of every right that no request used."""
    asked = {(each.verb, each.group, each.resource, each.name) for each in requests}
    nameless = {each[:3] for each in asked}
    missing = set()
    for rule in rules:
        names = rule.get("resourceNames")
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    key = (verb, group, resource)
                    if not (any((*key, name) in asked for name in names) if names else key in nameless):
                        missing.add(key)
    return missing
