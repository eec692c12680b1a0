"""The log of the controller: one line for each event, as JSON or as text.

The subject of a line is in separate fields, given as `extra`: `proxy`, `workload`, `port`, `policies`, `user`,
`namespace` and others. `trouble` and `over` are for `Throttle`, and are not written.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final, TypeAlias

from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.kubernetes import ApiError, UnreachableError

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "trouble", "over"}
_FIRST_INTERVAL_SECONDS: Final = 10.0  # until a lasting trouble is logged again; doubled each time
_MAX_INTERVAL_SECONDS: Final = 640.0
_FORGET_SECONDS: Final = 900.0  # after these, a repeated line counts as new
_BURST: Final = 5.0  # other lines that are logged without a pause
_REFILL_SECONDS: Final = 60.0  # until one more is logged
_KEY_BYTES: Final = 16
_OTHER_LINES: Final = b""  # the key of lines that are counted together
_API_SERVER: Final = "the API server"
_Text: TypeAlias = tuple[str, str]  # the logger and the text without its values, or the name of a trouble
_SECRETS: Final = regex(
    r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)"
    r"|(?i:\bbearer\s+)[\w.~+/=-]+"
    r"|\beyJ[\w-]{6,}\.[\w-]+\.[\w-]*"
)


def without_secrets(text: str) -> str:
    """Return a text without private keys, bearer tokens and JWTs."""
    return _SECRETS.sub("[redacted]", text)


def _clean(text: str) -> str:
    return printable(without_secrets(text))


def _fields(record: logging.LogRecord) -> dict[str, object]:
    given = ((key, value) for key, value in vars(record).items() if key not in _STANDARD)
    return {key: cleaned(value) for key, value in given if value is not None}


def cleaned(value: object) -> object:
    """Return plain data in which all texts are printable and without secrets."""
    match value:
        case bool() | int() | float() | None:
            return value
        case Mapping():
            return {_clean(str(key)): cleaned(each) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [cleaned(each) for each in value]
    return _clean(str(value))


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object, with its `extra` fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields: dict[str, object] = {
            "time": time,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _clean(record.getMessage()),
        }
        fields |= _fields(record)
        if record.exc_info:
            fields["exception"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(fields, default=str)


class TextFormatter(logging.Formatter):
    """Formats a record as a line of text with its `extra` fields at the end; a traceback follows."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a line, or several lines with a traceback."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = "".join(f" {key}={value}" for key, value in _fields(record).items())
        line = f"{at} {record.levelname:<7} {record.name}: {_clean(record.getMessage())}{fields}"
        if not record.exc_info:
            return line
        trace = without_secrets(self.formatException(record.exc_info))
        return "\n".join((line, *(printable(each) for each in trace.splitlines())))


@dataclass(slots=True)
class _Line:
    """The state of a repeated line: the times of its last occurrence and its last output, and the number of repetitions
    since.

    For a trouble also: whether it is over, and whether it was logged since it began.
    """

    seen_at: float
    passed_at: float
    interval: float = _FIRST_INTERVAL_SECONDS
    left: float = _BURST - 1.0
    repeated: int = 0
    errors: tuple[type, ...] = ()
    is_over: bool = False
    was_passed: bool = True


class Throttle(logging.Filter):
    """Limits repeated lines. A line that is logged again has the number of its suppressed repetitions (`repeated`).

    Two lines are the same if they have the same text without its values, and the same fields.

    - A line with the field `trouble` is about a lasting problem. It is logged once, and then at intervals that grow
      from ten seconds to about ten minutes.
    - A line with the field `over` reports the end of the trouble of that name with these fields. It is logged if
      the trouble was logged.
    - Any other line is logged five times, and then once a minute. The same holds for a trouble that begins
      repeatedly.
    - After a thousand different lines of one text within minutes, further lines of that text count as one. They
      never hide lines of another text.

    Debug lines are always logged.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = 1000) -> None:
        super().__init__()
        self._clock = clock
        self._most = most  # of each text
        self._known: dict[_Text, dict[bytes, _Line]] = {}
        self._lock = threading.Lock()
        self._cleared_at = clock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record."""
        if record.levelno < logging.INFO:
            return True
        with self._lock:
            return self._is_passed(record, self._clock())

    def _is_passed(self, record: logging.LogRecord, now: float) -> bool:
        given = vars(record)
        fields = ((name, str(value)) for name, value in given.items() if name not in _STANDARD)
        trouble, over = given.get("trouble"), given.get("over")
        lasting = trouble or over
        text = ("", str(lasting)) if lasting else (record.name, str(record.msg))
        key = blake2b(repr(sorted(fields)).encode(errors="replace"), digest_size=_KEY_BYTES).digest()
        lines = self._known.get(text, {})
        if over is not None:
            return key in lines and self._is_end_passed(record, lines[key], now)
        self._clear(now)
        if text not in self._known and len(self._known) >= self._most:
            text = record.name, ""  # for libraries that put values into their texts
        lines = self._known.setdefault(text, {})
        key = key if key in lines or len(lines) < self._most else _OTHER_LINES
        known = lines.get(key)
        errors = _errors_of(record)
        if known is None or now - known.seen_at > _FORGET_SECONDS:
            lines[key] = _Line(now, now, errors=errors)
            return True
        known.seen_at = now
        if trouble is not None and known.is_over:
            known.is_over, known.was_passed, known.interval = False, False, _FIRST_INTERVAL_SECONDS
            is_due = _is_line_due(known, now)
        else:
            is_due = _is_trouble_due(known, errors, now) if trouble is not None else _is_line_due(known, now)
        if not is_due:
            known.repeated += 1
            return False
        known.errors, known.was_passed = errors, True
        return self._pass(record, known, now)

    def _is_end_passed(self, record: logging.LogRecord, known: _Line, now: float) -> bool:
        is_first = not known.is_over
        known.is_over = True
        return is_first and known.was_passed and self._pass(record, known, now)

    @staticmethod
    def _pass(record: logging.LogRecord, known: _Line, now: float) -> bool:
        if known.repeated:
            record.repeated = known.repeated
        known.passed_at, known.repeated = now, 0
        return True

    def _clear(self, now: float) -> None:
        """Forget old lines, at most once in an interval."""
        if now - self._cleared_at <= _FIRST_INTERVAL_SECONDS:
            return
        self._cleared_at = now
        for text, lines in list(self._known.items()):
            self._known[text] = {key: known for key, known in lines.items() if now - known.seen_at <= _FORGET_SECONDS}
            if not self._known[text]:
                del self._known[text]


def _errors_of(record: logging.LogRecord) -> tuple[type, ...]:
    arguments = record.args if isinstance(record.args, tuple) else ()
    return tuple(type(argument) for argument in arguments if isinstance(argument, BaseException))


def _is_trouble_due(known: _Line, errors: tuple[type, ...], now: float) -> bool:
    """Return whether to log a trouble again: after the interval, or earlier for another type of error."""
    since = now - known.passed_at
    if errors != known.errors and since >= _FIRST_INTERVAL_SECONDS:
        known.interval = _FIRST_INTERVAL_SECONDS
        return True
    if since < known.interval:
        return False
    known.interval = min(known.interval * 2, _MAX_INTERVAL_SECONDS)
    return True


def _is_line_due(known: _Line, now: float) -> bool:
    left = min(_BURST, known.left + (now - known.passed_at) / _REFILL_SECONDS)
    if left < 1.0:
        return False
    known.left = left - 1.0
    return True


def log_trouble(log: logging.Logger, what: str, error: Exception, **fields: str) -> None:
    """Log a failed use of the API server. If the API server does not answer at all, all uses are one trouble."""
    if isinstance(error, UnreachableError):
        log.warning("the API server does not answer: %s", error, extra={"trouble": _API_SERVER})
    else:
        unexpected = error if not isinstance(error, ApiError) else None
        extra = {**fields, "trouble": what}
        log.warning("%s: %s", what, error, exc_info=unexpected, extra=extra)


def log_recovery(log: logging.Logger, what: str, **fields: str) -> None:
    """Log that a use of the API server works again, if it had failed."""
    log.info("the API server answers again", extra={"over": _API_SERVER})
    log.info("%s: works again", what, extra={**fields, "over": what})


def configure_logs(form: str, level: int) -> None:
    """Log records of this level or above to standard error, as `json` or `text`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    handler.addFilter(Throttle())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.WARNING))  # libraries log everything that they read, including secrets of callers
    logging.getLogger("eastgate").setLevel(level)
