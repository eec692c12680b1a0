"""Observability of a replica: logs without secrets, a limited number of metrics, and a sample of decisions."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import stat
from io import BytesIO
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from eastgate.cluster.ends import ServiceAccount
from eastgate.control.access_log import find_record
from eastgate.control.authorizer.checks import ProxyAnswer, ProxyCheck
from eastgate.control.authorizer.http_server import ServedRequest
from eastgate.control.identity.svid import utc_now
from eastgate.controller.admission.changes import AdmissionJudgement, AdmissionRefusal, RequestedChange
from eastgate.controller.admission.webhooks import Webhooks
from eastgate.controller.controller import HealthServer
from eastgate.controller.decision_log import DecisionSampling, SampledDecisions, open_decision_log
from eastgate.controller.election import Heartbeat
from eastgate.controller.judging import ObservedWebhooks
from eastgate.controller.logs import (
    JsonFormatter,
    TextFormatter,
    Throttle,
    cleaned,
    log_recovery,
    log_trouble,
    without_secrets,
)
from eastgate.controller.metrics import ControllerMetrics, decider
from eastgate.envoy.server import LISTENER, Metrics, ResourceRejection
from eastgate.reading.kubernetes import ApiError, UnreachableError
from tests.control.authorizer.worlds import live_authorizer
from tests.controller.admission.reviews import admission_review, policy, rules

_RULES = [{"authorizationSource": {"serviceAccounts": ["web"]}}]
_JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl"
_KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIB\n-----END EC PRIVATE KEY-----"


def answer(allowed: bool, decider: str) -> ProxyAnswer:
    return ProxyAnswer(allowed, 200 if allowed else 403, "id", record={"eastgate": "check", "decider": decider})


# Logs


@pytest.mark.parametrize("secret", [_KEY, f"Authorization: Bearer {_JWT}", _JWT, "bearer abc.def"])
def test_no_secret_gets_into_a_line(secret: str) -> None:
    record = logging.makeLogRecord({"msg": f"before {secret} after", "proxy": secret, "policies": [secret]})
    for line in (JsonFormatter().format(record), TextFormatter().format(record)):
        assert "before" in line
        assert "after" in line
        assert not any(part in line for part in ("MHcCAQ", "eyJ", "abc.def"))


def test_a_key_that_is_cut_off_is_no_less_secret() -> None:
    assert without_secrets(_KEY[:40]) == "[redacted]"


def test_records_have_one_line_and_name_their_subject() -> None:
    record = logging.makeLogRecord({"msg": "a\nb\x1b[2J", "name": "x", "levelname": "WARNING", "kind": "pods\n"})
    fields = json.loads(JsonFormatter().format(record))
    assert (fields["message"], fields["kind"], fields["level"]) == ("a\\nb\\x1b[2J", "pods\\n", "warning")
    text = TextFormatter().format(record)
    assert text.endswith("WARNING x: a\\nb\\x1b[2J kind=pods\\n")


def test_an_exception_is_logged_with_its_trace_and_without_secrets() -> None:
    try:
        raise ValueError(f"Bearer {_JWT}")
    except ValueError as error:
        record = logging.makeLogRecord({"msg": "it failed", "exc_info": (ValueError, error, error.__traceback__)})
    assert "ValueError: [redacted]" in json.loads(JsonFormatter().format(record))["exception"]
    assert TextFormatter().format(record).splitlines()[-1] == "ValueError: [redacted]"


class Log:
    """A separate log with a clock that tests set."""

    def __init__(self, most: int = 1000) -> None:
        self.now = 0.0
        self.lines: list[str] = []
        self.records: list[logging.LogRecord] = []
        self.logger = logging.Logger("test", logging.DEBUG)
        handler = logging.Handler()
        handler.addFilter(Throttle(lambda: self.now, most))
        handler.emit = self._emit  # type: ignore[method-assign]
        self.logger.addHandler(handler)

    def _emit(self, record: logging.LogRecord) -> None:
        repeated = vars(record).get("repeated")
        self.records.append(record)
        self.lines.append(record.getMessage() + (f" ({repeated})" if repeated else ""))


def test_a_trouble_is_repeated_at_growing_intervals_with_a_count() -> None:
    log, passed = Log(), []
    for second in range(3000):
        log.now = float(second)
        before = len(log.lines)
        log.logger.warning("%s: %s", "pods", OSError("refused"), extra={"trouble": "watch", "kind": "pods"})
        passed += [second] if len(log.lines) > before else []
    assert passed == [0, 10, 30, 70, 150, 310, 630, 1270, 1910, 2550]
    assert log.lines[:3] == ["pods: refused", "pods: refused (9)", "pods: refused (19)"]


def test_the_end_of_a_trouble_is_logged_once_and_only_if_there_was_one() -> None:
    log = Log()
    for _ in range(2):
        log.logger.info("it answers", extra={"over": "no answer", "address": "a"})
    for address in ("a", "a", "a", "b"):
        log.logger.warning("no answer: %s", OSError("refused"), extra={"trouble": "no answer", "address": address})
    for _ in range(2):
        log.logger.info("it answers", extra={"over": "no answer", "address": "a"})
    assert log.lines == ["no answer: refused", "no answer: refused", "it answers (2)"]
    log.logger.warning("no answer: %s", OSError("refused"), extra={"trouble": "no answer", "address": "a"})
    assert log.lines[-1] == "no answer: refused"


def test_a_trouble_that_begins_and_ends_all_the_time_is_bounded_too() -> None:
    log = Log()
    for second in range(600):
        log.now = float(second)
        log.logger.warning("no answer: %s", OSError("refused"), extra={"trouble": "no answer"})
        log.logger.info("it answers", extra={"over": "no answer"})
    begun = [line for line in log.lines if line.startswith("no answer")]
    ended = [line for line in log.lines if line.startswith("it answers")]
    assert len(begun) == len(ended)
    assert 5 <= len(begun) <= 15


def test_another_sort_of_error_is_another_line_but_not_at_each_change() -> None:
    log = Log()
    for second in range(30):
        log.now = float(second)
        error = OSError("refused") if second % 2 else ValueError("nonsense")
        log.logger.warning("%s", error, extra={"trouble": "watch"})
    assert len(log.lines) == 3
    assert {line.partition(" ")[0] for line in log.lines} == {"nonsense", "refused"}


def test_a_line_that_comes_all_the_time_is_bounded_and_others_are_not_touched() -> None:
    log = Log()
    for second in range(601):
        log.now = float(second)
        log.logger.info("%s connected", "a", extra={"proxy": "a"})
        log.logger.debug("all of it")
    log.logger.info("%s connected", "b", extra={"proxy": "b"})
    assert len([line for line in log.lines if line.startswith("a connected")]) == 5 + 9
    assert log.lines.count("all of it") == 601
    assert log.lines[-1] == "b connected"
    log.now += 900.1
    log.logger.info("%s connected", "a", extra={"proxy": "a"})
    assert log.lines[-1] == "a connected"


def test_lines_that_name_ever_new_things_are_bounded_too() -> None:
    log = Log(most=100)
    for number in range(10_000):
        log.now = number / 100
        log.logger.info("%s is refused", number, extra={"user": str(number)})
    assert len(log.lines) < 120
    log.now += 1000
    log.logger.info("%s is refused", "x", extra={"user": "x"})
    assert log.lines[-1] == "x is refused"


def test_a_flood_of_one_line_hides_no_other() -> None:
    log = Log(most=100)
    for number in range(10_000):
        log.logger.info("%s is refused", number, extra={"user": str(number)})
    before = len(log.lines)
    for number in range(20):
        log.logger.warning("%s is admitted", number, extra={"user": str(number)})
    assert len(log.lines) == before + 20


def test_texts_without_end_are_bounded() -> None:
    log = Log(most=100)
    for number in range(10_000):
        log.logger.info(f"{number} is refused")  # as libraries do
    assert len(log.lines) < 120


def test_the_fields_of_the_throttle_are_not_written() -> None:
    record = logging.makeLogRecord({"msg": "no answer", "trouble": "no answer", "over": "x", "namespace": None})
    assert json.loads(JsonFormatter().format(record)).keys() == {"time", "level", "logger", "message"}


def test_an_unreachable_api_server_is_one_trouble_for_all_uses() -> None:
    log = Log()
    for kind in ("pods", "nodes"):
        log_trouble(log.logger, kind, UnreachableError("connection refused"), kind=kind)
    log_trouble(log.logger, "pods", ApiError(403, "Forbidden", "not you"), kind="pods")
    for kind in ("pods", "nodes"):
        log_recovery(log.logger, kind, kind=kind)
    assert log.lines == [
        "the API server does not answer: connection refused",
        "pods: not you",
        "the API server answers again (1)",
        "pods: works again",
    ]


def test_plain_data_is_cleaned_all_through() -> None:
    data = {"a": [_KEY, 1, None], "b": {"c\n": (f"Bearer {_JWT}", True)}}
    assert cleaned(data) == {"a": ["[redacted]", 1, None], "b": {"c\\n": ["[redacted]", True]}}


@pytest.mark.parametrize(("dry_run", "level"), [(False, "INFO"), (True, "DEBUG")])
def test_a_refused_change_is_one_line_with_the_user_and_the_first_reason(
    caplog: pytest.LogCaptureFixture, dry_run: bool, level: str
) -> None:
    caplog.set_level(logging.DEBUG, "eastgate")
    review = admission_review(policy({**rules(_RULES), "wrong\n": 1, "more": 2}))
    review["request"] |= {"dryRun": dry_run, "userInfo": {"username": "alice"}}
    answer = asyncio.run(Webhooks().validate(review))
    assert not answer["response"]["allowed"]
    (record,) = caplog.records
    assert (record.levelname, record.getMessage().partition(": ")[0]) == (
        level,
        "CREATE of AuthorizationPolicy/shop/p by alice is refused",
    )
    assert record.getMessage().endswith(" (and 1 more)")
    fields = {"user": "alice", "namespace": "shop", "kind": "AuthorizationPolicy", "object": "p", "operation": "CREATE"}
    assert fields.items() <= vars(record).items()
    assert len(JsonFormatter().format(record).splitlines()) == 1


# Metrics


@pytest.mark.parametrize(
    ("decision", "label"),
    [
        ("200:shop.cart#0", "shop.cart"),
        ("403:shop.gone#2", "other"),
        ("403:none-of-3", "none-of"),
        ("503:proxy/upstream_reset{anything}", "proxy"),
        ("403:authorizer", "authorizer"),
        ("503:authorizer-without-answer", "authorizer-without-answer"),
        ("403:whatever a proxy says", "other"),
        ("", "other"),
    ],
)
def test_only_policies_that_exist_are_labels(decision: str, label: str) -> None:
    assert decider(decision, {"shop.cart"}) == label


def test_the_series_of_a_policy_go_with_it() -> None:
    metrics = ControllerMetrics(registry := CollectorRegistry())
    for allowed in (True, False):
        metrics.checked(answer(allowed, "shop.cart#0"), 0.001, {"shop.cart", "shop.web"})
        metrics.checked(answer(allowed, "shop.web#0"), 0.001, {"shop.cart", "shop.web"})
    assert generate_latest(registry).count(b'policy="shop.cart"') == 4  # with _created
    metrics.forget(["shop.cart", "shop.never"])
    assert b"shop.cart" not in generate_latest(registry)
    labels = {"verdict": "deny", "policy": "shop.web"}
    assert registry.get_sample_value("eastgate_check_decisions_total", labels) == 1


def test_the_rejections_of_a_policy_go_with_it() -> None:
    metrics = Metrics()
    metrics.rejected(LISTENER, ResourceRejection("1", "no", frozenset({"shop.cart", "shop.web"}), utc_now()))
    metrics.forget("shop.cart")
    text = generate_latest(metrics.registry)
    assert b"shop.cart" not in text
    assert b"shop.web" in text


async def _refuse(_change: RequestedChange) -> AdmissionJudgement:
    return AdmissionJudgement((AdmissionRefusal("no"),))


@pytest.mark.parametrize(
    ("target", "body", "webhook", "result"),
    [
        ("/validate?timeout=10s", admission_review(policy(rules(_RULES))), "validate", "denied"),
        ("/diagnose", admission_review(policy(rules(_RULES))), "diagnose", "allowed"),
        ("/validate", {}, "validate", "error"),
        ("/convert", {}, "convert", "error"),
        ("/somewhere", {}, "unknown", "error"),
    ],
)
def test_reviews_are_counted_by_webhook_and_result(target: str, body: object, webhook: str, result: str) -> None:
    metrics = ControllerMetrics(registry := CollectorRegistry())

    async def review() -> None:
        webhooks = ObservedWebhooks(metrics=metrics, judge=_refuse)
        await webhooks.answer(ServedRequest("POST", target, "1.1", (), json.dumps(body).encode(), None))
        webhooks.close()

    asyncio.run(review())
    labels = {"webhook": webhook, "result": result}
    assert registry.get_sample_value("eastgate_admission_requests_total", labels) == 1
    assert registry.get_sample_value("eastgate_admission_seconds_count", {"webhook": webhook}) == 1


# The decision log


def test_denials_are_logged_and_of_allows_a_sample() -> None:
    chances = iter([0.005, 0.01, 0.5, 0.999])
    log = SampledDecisions(stream := BytesIO(), DecisionSampling(0.01, 1.0), lambda: next(chances))
    for allowed in (True, True, False, False):
        log.decided(answer(allowed, "shop.cart#0" if allowed else "none-of-1"), 0.001)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["decider"] for line in lines] == ["shop.cart#0", "none-of-1", "none-of-1"]


def test_nothing_is_logged_without_a_share() -> None:
    log = SampledDecisions(stream := BytesIO(), DecisionSampling(0.0, 0.0), lambda: 0.0)
    log.decided(answer(False, "none-of-1"), 0.001)
    assert stream.getvalue() == b""


def test_why_explains_a_line_which_has_no_secrets() -> None:
    check = ProxyCheck(
        method="GET",
        host="toys.example",
        path="/toys?token=SECRET",
        headers={"authorization": "APIKEY SECRET"},
        source=ServiceAccount("toys", "web"),
    )
    log = SampledDecisions(stream := BytesIO(), DecisionSampling(1.0, 1.0))
    log.decided(live_authorizer().decide(check), 0.001)
    line = stream.getvalue().decode()
    assert "SECRET" not in line
    record = find_record(line)
    assert record is not None
    assert record["path"] == "/toys"


def test_the_file_is_appended_to_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    for line in (b"one\n", b"two\n"):
        with open_decision_log(str(tmp_path / "log")) as stream:
            stream.write(line)
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE(os.stat(tmp_path / "log").st_mode) == 0o600


# Health


async def _ask(server: HealthServer, path: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
    head = await reader.readline()
    writer.close()
    return int(head.split()[1])


def test_a_replica_that_starts_is_alive_and_not_ready() -> None:
    async def probe() -> list[int]:
        async with Heartbeat() as heartbeat, HealthServer("127.0.0.1", 0, heartbeat) as server:
            return [await _ask(server, path) for path in ("/healthz", "/readyz", "/metrics", "/debug")]

    assert asyncio.run(probe()) == [200, 503, 503, 404]


def test_a_loop_that_was_stuck_is_not_healthy() -> None:
    class Late(Heartbeat):
        age = 61.0

    async def probe() -> int:
        async with HealthServer("127.0.0.1", 0, Late()) as server:
            return await _ask(server, "/healthz")

    assert asyncio.run(probe()) == 503
