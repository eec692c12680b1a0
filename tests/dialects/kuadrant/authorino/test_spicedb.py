"""Permissions of a SpiceDB server, asked over gRPC."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import PermissionAnswer, PermissionQuestion, Services
from eastgate.dialects.kuadrant.authorino.model import (
    Authorization,
    LiteralValue,
    PermissionCheck,
    SecretRef,
    Selected,
    Value,
)
from eastgate.dialects.kuadrant.authorino.outcomes import Judgement
from eastgate.dialects.kuadrant.authorino.spicedb import SpiceDbClient, read_answer, written_question
from tests.dialects.kuadrant.authorino.schemes import holding, request, scheme, secret
from tests.patience import PATIENCE

HAS, HAS_NOT, CONDITIONAL = b"\x10\x02", b"\x10\x01", b"\x10\x03"
TOKEN = b"\x0a\x05\x0a\x03abc"
SECRET = secret("spicedb", None, word="s3cret")
QUESTION = (
    b"\x12\x0c\x0a\x04post\x12\x041234"  # the resource: 1234, a post
    b"\x1a\x04read"
    b"\x22\x0e\x0a\x0c\x0a\x04user\x12\x04anna"  # the subject: anna, a user
)


class Database(grpc.GenericRpcHandler):
    """Answers every question with the same bytes."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.asked: list[tuple[str, bytes, dict[str, Any]]] = []

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        def answer(question: bytes, context: grpc.ServicerContext) -> bytes:
            metadata = dict(context.invocation_metadata())
            self.asked.append((str(handler_call_details.method), question, metadata))
            if not self.answer:
                context.abort(grpc.StatusCode.PERMISSION_DENIED, "not for you")
            return self.answer

        return grpc.unary_unary_rpc_method_handler(answer)


@contextmanager
def database(answer: bytes) -> Iterator[tuple[Database, str]]:
    handler = Database(answer)
    server = grpc.server(ThreadPoolExecutor(1), handlers=[handler])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield handler, f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def asked(endpoint: str, services: Services, subject: Value | None = None, **more: Any) -> Judgement:
    check = PermissionCheck(
        endpoint,
        subject or LiteralValue("anna"),
        *(LiteralValue("user"), LiteralValue("1234"), LiteralValue("post"), LiteralValue("read")),
        **{"insecure": True, "shared_secret": SecretRef("spicedb", "word"), **more},
    )
    return evaluate(scheme(Authorization("db", check)), request(), services)


def live(*secrets: Any) -> Services:
    return holding(*(secrets or (SECRET,)), permissions=SpiceDbClient(timeout=PATIENCE))


def test_a_permission_is_asked_for_and_granted() -> None:
    with database(TOKEN + HAS) as (handler, endpoint):
        judged = asked(endpoint, live())
    assert judged.allowed
    ((method, question, metadata),) = handler.asked
    assert method == "/authzed.api.v1.PermissionsService/CheckPermission"
    assert question == QUESTION
    assert metadata["authorization"] == "Bearer s3cret"
    found = judged.document["auth"]["authorization"]["db"]  # type: ignore[index]
    assert found == {"checked_at": {"token": "abc"}, "permissionship": 2}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (TOKEN + HAS_NOT, "PERMISSIONSHIP_NO_PERMISSION;token=abc"),
        (CONDITIONAL, "PERMISSIONSHIP_CONDITIONAL_PERMISSION"),
        (TOKEN, "PERMISSIONSHIP_UNSPECIFIED;token=abc"),
        (b"\x10", "Unauthorized"),
        (b"", "Unauthorized"),
    ],
)
def test_any_other_answer_denies(answer: bytes, message: str) -> None:
    with database(answer) as (_, endpoint):
        judged = asked(endpoint, live())
    assert (judged.allowed, judged.status, judged.message) == (False, 403, message)


def test_a_server_that_is_away_denies() -> None:
    with database(HAS) as (_, endpoint):
        pass
    assert not asked(endpoint, live()).allowed


def test_what_keeps_the_question_from_being_asked() -> None:
    assert asked("127.0.0.1:1", holding(SECRET)).is_undecided
    assert not asked("127.0.0.1:1", holding(permissions=SpiceDbClient())).allowed, "there is no Secret"
    assert not asked("127.0.0.1:1", live(), Selected("auth.identity.sub")).allowed, "there is no subject"


PARTS = ("subject", "subject_kind", "resource", "resource_kind", "permission")


@pytest.mark.parametrize("name", PARTS)
def test_a_check_that_lacks_a_name_denies_and_asks_nobody(name: str) -> None:
    names: dict[str, Any] = {part: LiteralValue(part) for part in PARTS}
    with database(HAS) as (handler, endpoint):
        whole = PermissionCheck(endpoint, insecure=True, **names)
        assert evaluate(scheme(Authorization("db", whole)), request(), live()).allowed
        lacking = PermissionCheck(endpoint, insecure=True, **{**names, name: None})
        judged = evaluate(scheme(Authorization("db", lacking)), request(), live())
    assert (judged.allowed, judged.status, len(handler.asked)) == (False, 403, 1)


def test_messages() -> None:
    question = PermissionQuestion("", ("post", "1234"), "read", ("user", "anna"))
    assert written_question(question) == QUESTION
    assert len(written_question(PermissionQuestion("", ("post", "x" * 300), "read", ("user", "anna")))) > 300
    assert read_answer(HAS + b"\x1a\x02zz" + TOKEN) == PermissionAnswer(2, "abc")
    assert read_answer(b"\x19" + b"\0" * 8 + b"\x25" + b"\0" * 4 + HAS) == PermissionAnswer(2)
    for broken in (b"\x0a\x09abc", b"\xff" * 11, b"\x0b"):
        with pytest.raises(ValueError, match="a "):
            read_answer(broken)
