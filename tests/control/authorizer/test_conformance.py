"""A check gets the decision of the equivalent question: every case of the conformance tables, as a live check."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from threading import Lock

import pytest

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.authority.questions import Question, QuestionError
from eastgate.control.authorizer.checks import MESSAGE_HEADERS, Body, ProxyCheck, ProxyOptions
from eastgate.control.authorizer.deciding import CheckOptions, LiveAuthorizer
from eastgate.ir import Answer, Reply
from eastgate.ir.attributes import APPLICATION, query_of
from eastgate.ir.paths import handed_path, respelled_path
from eastgate.reading.mcp.messages import BadMessage, read_messages
from eastgate.reports.tables import read_tables
from eastgate.reports.tables.run import _keys, _manifests
from eastgate.settings import Settings

ROOT = Path(__file__).parents[3]
TABLES = [*sorted((ROOT / "conformance").rglob("*.yaml")), *sorted((ROOT / "examples").rglob("*.test.yaml"))]
NORMALIZING = CheckOptions(proxy=ProxyOptions(normalizes_paths=True))  # the proxies of the tables normalise paths
NAMED = {"prompts/get": "name", "tools/call": "name"}


class Given:
    """Authorizers that answer as a table states; without an answer, an error."""

    def __init__(self, question: Question) -> None:
        self._answers = question.external_auth
        self.was_silent = False

    def ask(self, name: str, check: ProxyCheck) -> Answer:  # noqa: ARG002
        self.was_silent = self.was_silent or name not in self._answers
        return self._answers.get(name, Reply.ERROR)


def completed(question: Question) -> Question:
    """Return the question with a method and a path, which every request has: by default a POST to `/`."""
    return replace(question, method="POST", path="/") if question.is_bare_message else question


def as_handed_on(question: Question) -> Question:
    """Return the question as a proxy that normalises paths forwards it: a dot segment that remains was encoded."""
    path = question.path
    return question if path is None else replace(question, path=respelled_path(handed_path(path) + query_of(path)))


def check_of(question: Question) -> ProxyCheck | None:
    method = question.mcp_method or ("tools/call" if question.tool is not None else None)
    check = ProxyCheck(
        question.source,
        question.method,
        question.path,
        question.host,
        question.headers or {},
        shown_headers=MESSAGE_HEADERS if question.headers is None else None,
        http_protocol=question.http_protocol,
        sni=question.sni,
        address=question.source_ip,
        certificate=question.certificate,
        to=str(question.destination),
        port=question.port,
        shows_bodies=True,
    )
    if method is None:
        return check
    body = _body(method, question.tool)
    return None if body is None else replace(check, body=body)


def _body(method: str, name: str | None) -> Body | None:
    params = {} if name is None else {NAMED.get(method, "uri"): name}
    content = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    try:
        (message,) = read_messages(content)
    except BadMessage:
        return None
    return Body(content, complete=True) if (message.method, message.name) == (method, name) else None


def _tells_bytes_apart(decision: Decision) -> bool:
    return any(APPLICATION in layer.looks_at for layer in decision.layers)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_checks_are_decided_as_questions(path: Path) -> None:
    tables, _ = read_tables([path], Settings())
    for table in tables:
        manifests = _manifests(table, {})
        if manifests.unattributed_errors or table.rejects:
            continue
        authority = Authority(manifests, keys=_keys(table), strict=False)
        for case in table.cases:
            question = as_handed_on(completed(case.question))
            if question.claims is not None or question.token is not None:
                continue  # a check brings a token in its headers
            if question.plaintext or question.forwarded_for is not None or question.protocol is not None:
                continue  # a check does not contain it
            if table.name == "guide-validating-webhook":
                continue  # it is about the body, which this check does not contain
            check = check_of(question)
            if check is None:
                continue  # no message contains it
            given = Given(question)
            live = LiveAuthorizer(authority, Lock(), given, NORMALIZING).decide(check)
            try:
                offline = authority.enforced(question)
            except QuestionError:
                assert not live.allowed, case.name
                continue
            if given.was_silent or (not question.is_http and _tells_bytes_apart(offline)):
                continue  # the answer is unknown offline; and a check is about HTTP
            if any(not each.policies for each in offline.enforcement):
                continue  # offline, the pod may have no identity; the caller of a check has a proven identity
            assert live.allowed is offline.allowed, f"{table.name}: {case.name}: {live.record}"
            if not live.allowed and not live.record.get("unread"):
                assert live.status == (offline.status or 403), f"{table.name}: {case.name}: {live.record}"
