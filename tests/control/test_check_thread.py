"""The thread that answers the checks of gateways, one or many at a time, and its shutdown."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from envoy.service.auth.v3.external_auth_pb2 import CheckRequest, CheckResponse

from eastgate.control.authorizing import CheckThread
from eastgate.control.sites import UnixEndpoint
from eastgate.envoy.authz.server import CheckReply, ReceivedCheck
from tests.patience import PATIENCE

Answer = Callable[[ReceivedCheck], CheckReply]


@contextmanager
def answering(folder: Path, answer: Answer) -> Iterator[tuple[CheckThread, Any]]:
    thread, path = CheckThread(answer, 1 << 20), str(folder / "checks")
    thread.start(UnixEndpoint(path))
    try:
        with grpc.insecure_channel(f"unix:{path}") as channel:
            yield (
                thread,
                channel.unary_unary(
                    "/envoy.service.auth.v3.Authorization/Check",
                    CheckRequest.SerializeToString,
                    CheckResponse.FromString,
                ),
            )
    finally:
        thread.stop(0.0)


def about(path: str) -> CheckRequest:
    request = CheckRequest()
    request.attributes.request.http.path = path
    return request


def reply(received: ReceivedCheck) -> CheckReply:
    if received.path == "/break":
        raise RuntimeError
    return CheckReply(received.path == "/good", 404)


def test_checks_are_answered_and_an_error_is_no_consent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with answering(tmp_path, reply) as (_, check):
        assert check(about("/good"), timeout=PATIENCE).WhichOneof("http_response") == "ok_response"
        denied = check(about("/bad"), timeout=PATIENCE)
        assert (denied.status.code, denied.denied_response.status.code) == (7, 404)
        with pytest.raises(grpc.RpcError):
            check(about("/break"), timeout=PATIENCE)
        assert "could not be answered" in caplog.text


def test_a_check_that_waits_holds_up_no_other_and_is_cut_off_at_the_end(tmp_path: Path) -> None:
    waiting, go_on = threading.Event(), threading.Event()

    def answer(received: ReceivedCheck) -> CheckReply:
        if received.path == "/wait":
            waiting.set()
            go_on.wait(PATIENCE)
        return reply(received)

    with answering(tmp_path, answer) as (thread, check), ThreadPoolExecutor(1) as pool:
        slow = pool.submit(check, about("/wait"), timeout=PATIENCE)
        assert waiting.wait(PATIENCE)
        assert check(about("/good"), timeout=PATIENCE).status.code == 0
        thread.stop(0.0)
        go_on.set()
        with pytest.raises(grpc.RpcError):
            slow.result()


def test_where_nothing_can_listen(tmp_path: Path) -> None:
    thread = CheckThread(reply, 1 << 20)
    with pytest.raises(OSError, match="No such file"):
        thread.start(UnixEndpoint(str(tmp_path / "nowhere" / "checks")))
    thread.stop(0.0)
