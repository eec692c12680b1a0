"""Every AuthPolicy row of the conformance suite, decided by a real Authorino: alike, or by a ruling that it names."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import grpc
import pytest

from eastgate.dialects.kuadrant.authorino.secrecy import MASK
from tests.authorino.requests import Answered, Issuers, answered, check_request, is_known, with_real_token
from tests.authorino.rows import Evaluated, Recorder, Row, in_namespace
from tests.authorino.running import Authorino

pytestmark = pytest.mark.authorino

STRICTER = re.compile(r"ruling (45|46|53)\b")
"""Where Eastgate is stricter on purpose."""
OTHERWISE = re.compile(r"ruling (50|53)\b")
"""Where Eastgate decides what Authorino does not: Rego as OPA has it, and every algorithm for keys at a URL."""


@dataclass(frozen=True)
class Replay:
    """An evaluation, and the AuthConfig that stands for its scheme."""

    row: Row
    evaluated: Evaluated
    key: str


def set_up(
    rows: list[Row], recorder: Recorder, authorino: Authorino, issuers: Issuers
) -> tuple[list[Replay], dict[str, str]]:
    """Create a namespace for each table and an AuthConfig for each scheme. Also returns which of them are not ready."""
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


def same_headers(ours: Evaluated, theirs: Answered) -> bool:
    """Whether the client, or the service behind, gets the same headers; but for the words of a reason, and secrets.

    Authorino prints nothing as `<nil>`, the way Go does.
    """
    judged = ours.judgement
    headers = judged.response_headers.items() if judged.allowed else judged.headers
    mine = sorted((name, value) for name, value in headers if name.lower() != "x-ext-auth-reason")
    told = sorted((name, value) for name, value in theirs.headers if name.lower() != "x-ext-auth-reason")
    return mine == told or any(MASK in value for _, value in mine) or any("<nil>" in value for _, value in told)


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
    for replay in replays:
        ours = replay.evaluated
        if replay.key in unready and not ours.judgement.allowed:
            counts["denied, and Authorino has no such AuthConfig"] += 1
            continue
        if not is_known(ours.facts) or ours.judgement.is_undecided:
            counts["about something unknown"] += 1
            continue
        request = check_request(with_real_token(ours.facts, ours.scheme), replay.key)
        judged = ours.judgement
        try:
            theirs = answered(authorino.check(request))
        except grpc.RpcError:
            theirs = Answered(0, ())
            counts["Authorino dies of it"] += 1
            authorino.revive({one.key for one in replays} - unready.keys())
            if not judged.allowed:
                continue
        cites = replay.row.case.cites or ""
        if judged.status == theirs.status and same_headers(ours, theirs):
            counts["equal"] += 1
        elif not judged.allowed and STRICTER.search(cites):
            counts["stricter by a ruling"] += 1
        elif judged.allowed and theirs.status != 200 and OTHERWISE.search(cites):
            counts["decided otherwise by a ruling"] += 1
        else:
            counts["different"] += 1
            wrong.append(
                f"{replay.row.case.span}: {replay.row.name}\n  ours {judged.status} {judged.reason} {judged.headers} "
                f"{dict(judged.response_headers)}\n  Authorino {theirs} {unready.get(replay.key, '')}"
            )
    print("".join(f"\n{number:6} {what}" for what, number in counts.items()))
    assert wrong == [], "\n".join(wrong)
