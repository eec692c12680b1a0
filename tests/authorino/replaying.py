"""Compares the evaluation of a scheme with a real Authorino's answer about the AuthConfig of the scheme."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

import grpc

from eastgate.dialects.kuadrant.authorino.secrecy import MASK
from tests.authorino.requests import Answered, answered, check_request, is_known, with_real_token
from tests.authorino.rows import Evaluated, Row
from tests.authorino.running import Authorino

STRICTER = re.compile(r"ruling (45|46|53|E)\b")
"""Rulings by which Eastgate is stricter on purpose."""
OTHERWISE = re.compile(r"ruling (50|53)\b")
"""Rulings by which Eastgate decides more than Authorino: OPA's Rego, and every algorithm for keys at a URL."""


def same_headers(ours: Evaluated, theirs: Answered) -> bool:
    """Return whether the client and the application get the same headers, except the texts of reasons, and secrets.

    Authorino prints a missing value as `<nil>`, as Go does.
    """
    judged = ours.judgement
    headers = judged.response_headers.items() if judged.allowed else judged.headers
    mine = sorted((name, value) for name, value in headers if name.lower() != "x-ext-auth-reason")
    told = sorted((name, value) for name, value in theirs.headers if name.lower() != "x-ext-auth-reason")
    return mine == told or any(MASK in value for _, value in mine) or any("<nil>" in value for _, value in told)


def compare(
    row: Row,
    ours: Evaluated,
    host: str,
    problems: Mapping[str, str],
    authorino: Authorino,
    counts: Counter[str],
    alive: frozenset[str] = frozenset(),
) -> Iterator[str]:
    """Yield the differences of one evaluation, and count it. `problems` are those of AuthConfigs, by their hosts.

    If a request kills Authorino, it is started again, until it knows the hosts in `alive`.
    """
    judged = ours.judgement
    if host in problems and not judged.allowed:
        counts["denied, and Authorino has no such AuthConfig"] += 1
        return
    if not is_known(ours.facts) or judged.is_undecided:
        counts["about something unknown"] += 1
        return
    request = check_request(with_real_token(ours.facts, ours.scheme), host)
    try:
        theirs = answered(authorino.check(request))
    except grpc.RpcError:
        theirs = Answered(0, ())
        counts["Authorino dies of it"] += 1
        authorino.revive(alive)
        if not judged.allowed:
            return
    cites = row.case.cites or ""
    if judged.status == theirs.status and same_headers(ours, theirs):
        counts["equal"] += 1
    elif not judged.allowed and STRICTER.search(cites):
        counts["stricter by a ruling"] += 1
    elif judged.allowed and theirs.status != 200 and OTHERWISE.search(cites):
        counts["decided otherwise by a ruling"] += 1
    else:
        counts["different"] += 1
        yield (
            f"{row.case.span}: {row.name}\n  ours {judged.status} {judged.reason} {judged.headers} "
            f"{dict(judged.response_headers)}\n  Authorino {theirs} {problems.get(host, '')}"
        )
