"""A real Authorino decides every AuthPolicy row of the conformance suite alike, or the row names a ruling."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest

from tests.authorino.replaying import compare
from tests.authorino.requests import Issuers
from tests.authorino.rows import Evaluated, Recorder, Row, in_namespace
from tests.authorino.running import Authorino

pytestmark = pytest.mark.authorino


@dataclass(frozen=True)
class Replay:
    """An evaluation, and the AuthConfig for its scheme."""

    row: Row
    evaluated: Evaluated
    key: str


def set_up(
    rows: list[Row], recorder: Recorder, authorino: Authorino, issuers: Issuers
) -> tuple[list[Replay], dict[str, str]]:
    """Create a namespace for each table and an AuthConfig for each scheme.

    Also return the AuthConfigs that are not ready.
    """
    keys: dict[int, str] = {}
    namespaces: set[str] = set()
    refused: list[str] = []
    replays: list[Replay] = []
    numbers: dict[int, int] = {}
    for row in rows:
        number = numbers.setdefault(id(row.table), len(numbers))
        for one in row.evaluated:
            namespace = f"table-{number}-{one.scheme.namespace}"
            if namespace not in namespaces:
                namespaces.add(namespace)
                authorino.create_namespace(namespace, row.secrets(one.scheme.namespace))
            if id(one.scheme) not in keys:
                name = f"scheme-{len(keys)}"
                keys[id(one.scheme)] = f"{name}.test"
                spec = {**issuers.in_place(recorder.spec(one.scheme), row.table.jwks), "hosts": [f"{name}.test"]}
                spec = in_namespace(spec, one.scheme.namespace, namespace)
                problem = authorino.create_config(namespace, name, spec)
                if problem:
                    refused.append(f"{row.name}: {problem}")
            replays.append(Replay(row, one, keys[id(one.scheme)]))
    assert refused == [], "\n".join(refused)
    unready = authorino.wait_for_configs()
    return replays, {f"{name.rpartition('/')[2]}.test": problem for name, problem in unready.items()}


def test_every_row_is_decided_alike_or_by_a_ruling(
    authorino: Authorino, issuers: Issuers, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(monkeypatch)
    rows = list(recorder.rows())
    counts: Counter[str] = Counter(rows=len(rows))
    asked = [row for row in rows if row.evaluated]
    counts["decided before a scheme is asked"] = len(rows) - len(asked)
    wrong: list[str] = []
    replays, unready = set_up(asked, recorder, authorino, issuers)
    alive = frozenset(replay.key for replay in replays) - unready.keys()
    for replay in replays:
        wrong += compare(replay.row, replay.evaluated, replay.key, unready, authorino, counts, alive)
    print("".join(f"\n{number:6} {what}" for what, number in counts.items()))
    assert wrong == [], "\n".join(wrong)
