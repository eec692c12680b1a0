"""`describe gateway` shows the enforcers of policies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eastgate import load
from eastgate.reports.cluster import Cluster
from eastgate.reports.describe import describe
from tests.local.agents import AGENTS, ASKING, POLICIES


def _enforcement(folder: Path) -> tuple[list[str], dict[str, dict[str, Any]]]:
    for name, text in (("agents", AGENTS), ("policies", POLICIES), ("asking", ASKING)):
        (folder / f"{name}.yaml").write_text(text)
    (described,) = describe(Cluster(load(folder)), "gateway", "gw", "prod")
    lines = described.lines()
    start, end = lines.index("Enforcement:"), lines.index("Effective:")
    entries = described.to_json()["enforcement"]
    assert isinstance(entries, list)
    return lines[start + 1 : end], {f"{entry['route']}#{entry['rule']}": entry for entry in entries}


def test_policies_are_listed_with_their_enforcers(tmp_path: Path) -> None:
    lines, entries = _enforcement(tmp_path)
    at = lines.index("  HTTPRoute prod/maths rule 0 -> XBackend prod/maths")
    assert lines[at + 1 : at + 5] == [
        "    gateway/access  by the gateway's Envoy",
        "      XAccessPolicy/prod/at-gateway",
        "    backend/access  by the gateway's Envoy",
        "      XAccessPolicy/prod/at-backend",
    ]
    [at_gateway, at_backend] = entries["HTTPRoute/prod/maths#0"]["layers"]
    assert (at_gateway["enforcedBy"], at_backend["enforcedBy"]) == ("envoy", "envoy")


def test_a_layer_names_its_authorizer(tmp_path: Path) -> None:
    lines, entries = _enforcement(tmp_path)
    assert "    backend/access  by the gateway's Envoy, and by the authorizer where rules ask: consent.prod:80" in lines
    [_, at_backend] = entries["HTTPRoute/prod/asking#0"]["layers"]
    assert (at_backend["enforcedBy"], at_backend["asks"]) == ("both", ["consent.prod:80"])


def test_a_closed_route_says_why(tmp_path: Path) -> None:
    lines, entries = _enforcement(tmp_path)
    at = lines.index("  HTTPRoute prod/web rule 2 -> Service prod/web")
    assert lines[at + 1].startswith("    closed: the gateway cannot do all that the route asks for: ")
    assert "RequestMirror" in lines[at + 1]
    assert entries["HTTPRoute/prod/web#2"]["closed"]
    assert not entries["HTTPRoute/prod/web#0"]["closed"]
