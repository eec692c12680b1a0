"""The oracle of network policies gives the expected answer for every row of the conformance suites."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.worlds.network_oracle import KINDS, Ask, Manifest, Network

SUITE = Path(__file__).parents[2] / "conformance"
FILES = [path for folder in KINDS[:3] for path in sorted((SUITE / folder).glob("*.yaml"))]


def tables(path: Path) -> Iterator[Manifest]:
    """Yield the tables that ask only about the network."""
    for table in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        spec: Manifest = table["spec"]
        if "cases" in spec and not any(manifest["apiVersion"].startswith("gateway.") for manifest in spec["objects"]):
            yield table


def network_of(spec: Manifest) -> Network:
    is_ignored = (spec.get("settings") or {}).get("networkPolicies") == "ignore"
    return Network(manifest for manifest in spec["objects"] if not (is_ignored and manifest["kind"] in KINDS))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_row_is_as_the_oracle_has_it(path: Path) -> None:
    different = []
    for table in tables(path):
        network = network_of(table["spec"])
        for row in table["spec"]["cases"]:
            ask = Ask(row["from"], row["to"], row.get("port"), row.get("protocol", "tcp"), row.get("sourceIP"))
            allowed, names = network.decide(ask)
            if allowed is not (row["expect"] == "allow") or ("by" in row and row["by"] not in names):
                different.append(f"{table['metadata']['name']}: {row['name']}: {allowed}, by {sorted(names)}")
    assert different == []
