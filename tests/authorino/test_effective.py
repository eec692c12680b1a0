"""Eastgate and a real Authorino decide alike about effective rules of today's AuthPolicies, or a ruling explains it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from tests.authorino.replaying import compare
from tests.authorino.requests import Issuers
from tests.authorino.rows import Recorder, Row
from tests.authorino.running import Authorino, Manifest
from tests.authorino.serving import GROUP, serving_objects

pytestmark = pytest.mark.authorino

SUITE = Path(__file__).parents[2] / "conformance" / "Kuadrant"


def configs_of(rows: list[Row], recorder: Recorder) -> tuple[dict[int, str], list[Manifest]]:
    """Return the host of each scheme that the rows ask, by the identity of the scheme, and an AuthConfig for each."""
    schemes = {id(each.scheme): each.scheme for row in rows for each in row.evaluated}
    hosts = {key: f"scheme-{number}.test" for number, key in enumerate(schemes)}
    configs = [
        {
            "apiVersion": f"{GROUP}/v1beta3",
            "kind": "AuthConfig",
            "metadata": {"name": hosts[key].removesuffix(".test"), "namespace": scheme.namespace},
            "spec": {**recorder.spec(scheme), "hosts": [hosts[key]]},
        }
        for key, scheme in schemes.items()
    ]
    return hosts, configs


def problems_of(
    rows: list[Row], recorder: Recorder, authorino: Authorino, issuers: Issuers, counts: Counter[str]
) -> Iterator[str]:
    hosts, configs = configs_of(rows, recorder)
    secrets = [each for each in rows[0].objects if each["kind"] == "Secret"]
    with serving_objects([*secrets, *configs], rows[0].table.jwks, authorino, issuers) as served:
        problems = {f"{name.rpartition('/')[2]}.test": why for name, why in served.problems.items()}
        for row in rows:
            for each in row.evaluated:
                yield from compare(row, each, hosts[id(each.scheme)], problems, authorino, counts)


def test_effective_rules_are_decided_alike_or_by_a_ruling(
    authorino: Authorino, issuers: Issuers, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(monkeypatch, SUITE)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for _, rows in groupby(recorder.rows(), key=lambda row: id(row.table)):
        wrong += problems_of(list(rows), recorder, authorino, issuers, counts)
    print("".join(f"\n{number:6} {what}" for what, number in counts.items()))
    assert counts["equal"]
    assert wrong == [], "\n".join(wrong)
