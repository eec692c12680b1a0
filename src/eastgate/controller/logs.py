"""The log of the controller: one line for each event, as JSON for machines or as text for people.

What a line is about stands in fields of its own, given as `extra`: `proxy`, `workload`, `port`, `policies`, `user`,
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
_FIRST_INTERVAL: Final = 10.0  # seconds until a trouble that lasts is passed again; twice as long each time
_LONGEST_INTERVAL: Final = 640.0
_FORGOTTEN: Final = 900.0  # seconds after which a line that comes again is new
_BURST: Final = 5.0  # how often any other line is passed at once
_REFILL: Final = 60.0  # seconds until it is passed once more
_KEY_BYTES: Final = 16
_ALL_OTHERS: Final = b""  # the key of lines that are not told apart
_API_SERVER: Final = "the API server"
_Text: TypeAlias = tuple[str, str]  # the logger and the text before its values are filled in, or the name of a trouble
_SECRETS: Final = regex(
    r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)"
    r"|(?i:\bbearer\s+)[\w.~+/=-]+"
    r"|\beyJ[\w-]{6,}\.[\w-]+\.[\w-]*"
)


def without_secrets(text: str) -> str:
    """Return a text without the private keys, bearer tokens and JWTs in it."""
    return _SECRETS.sub("[redacted]", text)


def _clean(text: str) -> str:
    return printable(without_secrets(text))


def _fields(record: logging.LogRecord) -> dict[str, object]:
    given = ((key, value) for key, value in vars(record).items() if key not in _STANDARD)
    return {key: cleaned(value) for key, value in given if value is not None}


def cleaned(value: object) -> object:
    """Return plain data with all texts in it printable and without secrets."""
    match value:
        case bool() | int() | float() | None:
            return value
        case Mapping():
            return {_clean(str(key)): cleaned(each) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [cleaned(each) for each in value]
    return _clean(str(value))


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object, with what was given to it as `extra`."""

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
    """Writes a record as a line of text, with what was given to it as `extra` at the end; a traceback follows it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a line, or several with a traceback."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = "".join(f" {key}={value}" for key, value in _fields(record).items())
        line = f"{at} {record.levelname:<7} {record.name}: {_clean(record.getMessage())}{fields}"
        if not record.exc_info:
            return line
        trace = without_secrets(self.formatException(record.exc_info))
        return "\n".join((line, *(printable(each) for each in trace.splitlines())))


@dataclass(slots=True)
class _Line:
    """A line that came: when it last came, when it was last passed, and how often it came since.

    Of a trouble also: whether it is over, and whether it was passed since it began.
    """

    seen_at: float
    passed_at: float
    interval: float = _FIRST_INTERVAL
    left: float = _BURST - 1.0
    repeated: int = 0
    errors: tuple[type, ...] = ()
    is_over: bool = False
    was_passed: bool = True


class Throttle(logging.Filter):
    """Bounds how often a line is repeated. A line that is passed again has how often it came meanwhile (`repeated`).

    Two lines are the same if they have the same text, before its values are filled in, and the same fields.

    - A line with the field `trouble` is about something that lasts. It is passed once, and then at intervals that grow
      from ten seconds to about ten minutes.
    - A line with the field `over` says that the trouble of that name, with these fields, is over. It is passed if that
      trouble was.
    - Any other line is passed five times, and then once a minute. So is a trouble that begins again and again.
    - If there are a thousand different lines of one text within minutes, new ones of that text are not told apart any
      more. No number of them hides lines of another text.

    What is logged for debugging always passes.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = 1000) -> None:
        super().__init__()
        self._clock = clock
        self._most = most  # of each text
        self._known: dict[_Text, dict[bytes, _Line]] = {}
        self._lock = threading.Lock()
        self._cleared_at = clock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is passed."""
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
            text = record.name, ""  # a library that writes values into its texts
        lines = self._known.setdefault(text, {})
        key = key if key in lines or len(lines) < self._most else _ALL_OTHERS
        known = lines.get(key)
        errors = _errors_of(record)
        if known is None or now - known.seen_at > _FORGOTTEN:
            lines[key] = _Line(now, now, errors=errors)
            return True
        known.seen_at = now
        if trouble is not None and known.is_over:
            known.is_over, known.was_passed, known.interval = False, False, _FIRST_INTERVAL
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
        """Forget the lines that have not come for long; look for them now and then."""
        if now - self._cleared_at <= _FIRST_INTERVAL:
            return
        self._cleared_at = now
        for text, lines in list(self._known.items()):
            self._known[text] = {key: known for key, known in lines.items() if now - known.seen_at <= _FORGOTTEN}
            if not self._known[text]:
                del self._known[text]


def _errors_of(record: logging.LogRecord) -> tuple[type, ...]:
    arguments = record.args if isinstance(record.args, tuple) else ()
    return tuple(type(argument) for argument in arguments if isinstance(argument, BaseException))


def _is_trouble_due(known: _Line, errors: tuple[type, ...], now: float) -> bool:
    """Return whether to pass a trouble again: after the interval, or earlier if it is another sort of error now."""
    since = now - known.passed_at
    if errors != known.errors and since >= _FIRST_INTERVAL:
        known.interval = _FIRST_INTERVAL
        return True
    if since < known.interval:
        return False
    known.interval = min(known.interval * 2, _LONGEST_INTERVAL)
    return True


def _is_line_due(known: _Line, now: float) -> bool:
    left = min(_BURST, known.left + (now - known.passed_at) / _REFILL)
    if left < 1.0:
        return False
    known.left = left - 1.0
    return True


def log_trouble(log: logging.Logger, what: str, error: Exception, **fields: str) -> None:
    """Log that something about the API server fails. While no request gets an answer, that is one trouble for all."""
    if isinstance(error, UnreachableError):
        log.warning("the API server does not answer: %s", error, extra={"trouble": _API_SERVER})
    else:
        unexpected = error if not isinstance(error, ApiError) else None
        extra = {**fields, "trouble": what}
        log.warning("%s: %s", what, error, exc_info=unexpected, extra=extra)


def log_recovery(log: logging.Logger, what: str, **fields: str) -> None:
    """Log that something about the API server works again, if it had failed."""
    log.info("the API server answers again", extra={"over": _API_SERVER})
    log.info("%s: works again", what, extra={**fields, "over": what})


def configure_logs(form: str, level: int) -> None:
    """Log to standard error, as `json` or `text`, what is of this level or above."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    handler.addFilter(Throttle())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.WARNING))  # libraries log all that they read, secrets of callers as well
    logging.getLogger("eastgate").setLevel(level)
