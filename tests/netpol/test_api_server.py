"""A real API server accepts every NetworkPolicy of the conformance suites, and refuses those marked as invalid."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.programs import ApiServer
from tests.worlds.network_oracle import KINDS, Manifest

pytestmark = pytest.mark.apiserver

SUITE = Path(__file__).parents[2] / "conformance"
OURS = "ruling 67"  # an API server cannot see it: two policies with one name


def network_policies() -> Iterator[tuple[str, Manifest, bool]]:
    """Yield each NetworkPolicy with the name of its table, and whether the server must refuse it."""
    for path in (path for folder in KINDS[:3] for path in sorted((SUITE / folder).glob("*.yaml"))):
        for table in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            rejects = {row["policy"]: row["cites"] for row in table["spec"].get("rejects", ())}
            for manifest in table["spec"]["objects"]:
                name = f"NetworkPolicy/{manifest['metadata'].get('namespace')}/{manifest['metadata']['name']}"
                if manifest["apiVersion"] == "networking.k8s.io/v1" and rejects.get(name) != OURS:
                    yield table["metadata"]["name"], manifest, name in rejects


def test_it_refuses_exactly_the_invalid_policies(api_server: ApiServer) -> None:
    namespaces: dict[str, str] = {}  # by the policies' own; the server is shared with other tests
    different: list[str] = []
    for table, manifest, is_refused in network_policies():
        namespace = manifest["metadata"]["namespace"]
        if namespace not in namespaces:
            namespaces[namespace] = api_server.namespace("netpol")
        manifest = manifest | {"metadata": manifest["metadata"] | {"namespace": namespaces[namespace]}}
        path = f"/apis/networking.k8s.io/v1/namespaces/{namespaces[namespace]}/networkpolicies"
        status, answer = api_server.request("POST", f"{path}?dryRun=All&fieldValidation=Strict", manifest)
        if (status != 201) is not is_refused:
            different.append(f"{table}: {manifest['metadata']['name']}: {status} {answer.get('message')}")
    assert different == []
