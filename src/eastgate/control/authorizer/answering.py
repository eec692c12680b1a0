"""Builds the answer to a check from its decisions: the action of the proxy, headers, response, and log record."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from http import HTTPStatus

from eastgate.authority.decisions import Decision
from eastgate.basics.regexes import regex
from eastgate.control.authorizer.checks import DECISION_HEADER, MessageReading, Pairs, ProxyAnswer, ProxyCheck
from eastgate.control.authorizer.log import LazyRecord
from eastgate.envoy.plan.decisions import verdict_of
from eastgate.ir import Answer as AuthorizerAnswer
from eastgate.ir import Pending, RawRequest, Refusal, Reply, Ruling, TakenOff, TokenDeriving
from eastgate.ir.attributes import UNKNOWN, Unknown, cookies_without, header_values

_NAME = regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = regex(r"[\t\x20-\x7e\x80-\xff]*")
_MAX_LOGGED_CHARS = 1024  # of each value that the client sent
_RPC_CODES = {400: -32600, 401: -32001, 404: -32001}
_FORBIDDEN = -32001


class Answers:
    """Builds the answer to one check."""

    def __init__(self, check: ProxyCheck, *, plain: bool, keeps_own: bool = False) -> None:
        self._check = check
        self._keeps_own = keeps_own
        self._plain = plain
        self.id = os.urandom(8).hex()
        self.headers = header_values(check.headers)

    def raw(self, *, may_wait: bool) -> RawRequest:
        """Return the parts of the request that only authorizers read, beside the request of the rules."""
        check = self._check
        body, size = _body(check)
        return RawRequest(
            self.headers if check.shown_headers is None else None,  # a header that is not shown may still be present
            check.http_protocol,
            certificate=check.certificate,
            scheme=check.scheme,
            port=check.source_port,
            body=body,
            size=size,
            extensions=check.extensions,
            explain=False,
            may_wait=may_wait,
        )

    def after_failure(self, pending: Pending) -> AuthorizerAnswer:
        """Return the answer for an authorizer whose call failed."""
        if pending.authorizer is None:
            return Reply.ERROR
        return Ruling(False, Refusal.FORBIDDEN, "it could not be evaluated")

    def of(self, decisions: Sequence[Decision], reading: MessageReading) -> ProxyAnswer:
        """Return an answer that allows the request if all decisions allow it, and else the first denial."""
        decision = next((decision for decision in decisions if not decision.allowed), decisions[-1])
        rulings = [ruling for each in decisions for ruling in _consents(each)]
        forged = () if self._keeps_own else self._check.forged_headers
        taken_off = [each for allowed in decisions if allowed.allowed for each in _taken_off(allowed)]
        changes: list[TakenOff | Ruling] = [*taken_off, *rulings]
        removed = dict.fromkeys((*forged, *(name for each in changes for name in each.removed)))
        if decision.allowed:
            headers = {name.lower(): (name, value) for each in changes for name, value in each.headers}
            cookies = self._cookies_without({name for each in changes for name in each.cookies})
            if cookies is not None and "cookie" not in {*headers, *map(str.lower, removed)}:
                headers |= {"cookie": ("cookie", cookies)} if cookies else {}
                removed |= {"cookie": None} if not cookies else {}
            headers[DECISION_HEADER] = (DECISION_HEADER, self.id)
            if not all(map(_is_header, headers.values())):
                return self.refuse(500, "error", "an authorizer gave a header that cannot be sent")
            gone = tuple(name for name in removed if name.lower() not in headers)
            record = LazyRecord(lambda: {**self._record(decision, reading), **_ALLOWED})
            parameters = tuple(dict.fromkeys(name for each in changes for name in each.parameters))
            return ProxyAnswer(True, 200, self.id, tuple(headers.values()), gone, parameters, record=record)
        status = _status(decision.status)
        if reading.problem is not None and status == Refusal.FORBIDDEN:
            status = Refusal.BAD_REQUEST.value
        ruling = decision.ruling
        own = tuple(header for header in ruling.headers if _is_header(header)) if ruling is not None else ()
        body = ruling.body.encode() if ruling is not None else b""
        return self._denied(status, own, body, decision, reading)

    def _cookies_without(self, names: Set[str]) -> str | None:
        """Return the cookies of the client without these, or None if it sent none of these."""
        cookies = "; ".join(self.headers.get("cookie", ()))
        others = cookies_without(cookies, names)
        return None if others == cookies_without(cookies, ()) else others

    def _denied(
        self, status: int, headers: Pairs, body: bytes, decision: Decision, reading: MessageReading
    ) -> ProxyAnswer:
        rpc = b"" if self._plain else _rpc_error(status, reading)
        if rpc:
            kept = tuple((name, value) for name, value in headers if name.lower() not in _BODY_HEADERS)
            headers, body = (*kept, ("content-type", "application/json")), rpc
        record = LazyRecord(lambda: {**self._record(decision, reading), "verdict": "deny", "status": status})
        client_headers = (*headers, (DECISION_HEADER, self.id))
        return ProxyAnswer(False, status, self.id, client_headers=client_headers, body=body, record=record)

    def refuse(self, status: int, why: str, text: str) -> ProxyAnswer:
        """Return a denial without a policy: `why` is for machines, `text` for readers of the log."""
        return refuse(self._check, status, why, text, self.id)

    def _record(self, decision: Decision, reading: MessageReading) -> dict[str, object]:
        question, outcome = decision.question, decision.outcome
        messages = [(each.message.method, each.message.name) for each in reading.messages if each is not None]
        return {
            **_record_of(self._check, self.id),
            "to": str(question.destination),
            "port": question.port,
            "mcpMethod": question.mcp_method,
            "tool": question.tool,
            "messages": len(messages) or None,
            "unread": reading.problem,
            "layer": outcome.layer,
            "stage": outcome.stage,
            "policy": decision.policy,
            "rule": decision.rule,
            "decider": verdict_of(outcome, 0).who,
            "asked": {name: _word(answer) for name, answer in decision.arrival.request.answers.items()},
        }


def _body(check: ProxyCheck) -> tuple[str | Unknown | None, int | None]:
    """Return the text of the body and its size, or UNKNOWN and None for an unknown one. Without a body the text is
    None.
    """
    body = check.body
    if body is None or not body.complete:
        return (None, 0) if check.is_without_body else (UNKNOWN, None)
    try:
        return body.content.decode(), len(body.content)
    except UnicodeDecodeError:
        return UNKNOWN, len(body.content)


_ALLOWED: Mapping[str, object] = {"verdict": "allow", "status": 200}
_BODY_HEADERS = frozenset({"content-type", "content-length", "content-encoding", "transfer-encoding"})


def refuse(check: ProxyCheck, status: int, why: str, text: str, decision_id: str | None = None) -> ProxyAnswer:
    """Return a denial without a policy."""
    own_id = decision_id or os.urandom(8).hex()
    reason = {"verdict": "deny", "status": status, "why": why, "reason": text}
    record = LazyRecord(lambda: {**_record_of(check, own_id), **reason})
    return ProxyAnswer(False, status, own_id, client_headers=((DECISION_HEADER, own_id),), record=record, why=why)


def _record_of(check: ProxyCheck, decision_id: str) -> dict[str, object]:
    return {
        "eastgate": "check",
        "id": decision_id,
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "from": str(check.source),
        "sourceIp": check.address,
        "method": _shown(check.method),
        "host": _shown(check.host),
        "path": _shown(check.path.partition("?")[0] if check.path is not None else None),
        "proxyId": _shown(check.proxy_id),
    }


def _shown(text: str | None) -> str | None:
    return text if text is None or len(text) <= _MAX_LOGGED_CHARS else text[: _MAX_LOGGED_CHARS - 1] + "…"


def _status(status: int) -> int:
    """Return the status of a denial. The authorizer cannot close the connection, and a proxy takes 200 for ALLOW."""
    return status if 300 <= status <= 599 else Refusal.FORBIDDEN.value


def _consents(decision: Decision) -> Iterator[Ruling]:
    for answer in decision.arrival.request.answers.values():
        if isinstance(answer, Ruling) and answer.allowed:
            yield answer


def _taken_off(decision: Decision) -> Iterator[TakenOff]:
    """Yield the changes that remove the tokens that layers accepted."""
    for derivation in dict.fromkeys(each for layer in decision.layers for each in layer.derivations):
        if isinstance(derivation, TokenDeriving):
            yield derivation.take_off(decision.arrival.request.values, decision.question.raw)


def _word(answer: AuthorizerAnswer) -> str:
    return str(answer) if not isinstance(answer, Ruling) else "allow" if answer.allowed else "deny"


def _is_header(header: tuple[str, str]) -> bool:
    name, value = header
    return _NAME.fullmatch(name) is not None and _VALUE.fullmatch(value) is not None


def _rpc_error(status: int, reading: MessageReading) -> bytes:
    """Return JSON-RPC errors for the requests that wait for a response; empty if there are none."""
    error = {"code": _RPC_CODES.get(status, _FORBIDDEN), "message": _phrase(status)}
    if reading.problem is not None:
        return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    errors = [{"jsonrpc": "2.0", "id": request_id, "error": error} for request_id in reading.ids]
    return json.dumps(errors if reading.is_batch else errors[0]).encode() if errors else b""


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return HTTPStatus.FORBIDDEN.phrase
