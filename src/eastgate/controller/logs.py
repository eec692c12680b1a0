"""The log of the controller: one line for each event, as JSON for machines or as text for people.

What a line is about stands in fields of its own, given as `extra`: `kind`, `policy`, `proxy`, `resource`.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from eastgate.diagnostics.printable import printable
from eastgate.regexes import regex

__all__ = ["JsonFormatter", "RepeatedWarnings", "TextFormatter", "cleaned", "configure_logs", "without_secrets"]

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
_QUIET: Final = 60.0  # seconds for which the same warning is not repeated
_MOST_TROUBLES: Final = 1000
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
    return {key: cleaned(value) for key, value in vars(record).items() if key not in _STANDARD}


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


class RepeatedWarnings:
    """Warns of troubles, and of one that goes on only once a minute, with how often it has come meanwhile.

    `field` is the name of what a trouble is about, in the fields of the line.
    """

    def __init__(
        self,
        log: logging.Logger,
        field: str = "kind",
        quiet: float = _QUIET,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._field = field
        self._quiet = quiet
        self._clock = clock
        self._warned: dict[tuple[str, str], tuple[float, int]] = {}  # when, and how often it came since

    def warn(self, what: str, error: Exception) -> None:
        """Warn that something fails: the same sort of error about the same thing is the same trouble."""
        key, now = (what, type(error).__name__), self._clock()
        warned_at, repeated = self._warned.get(key, (None, 0))
        if warned_at is not None and now - warned_at < self._quiet:
            self._warned[key] = warned_at, repeated + 1
            return
        if len(self._warned) >= _MOST_TROUBLES:
            self._warned = {known: at for known, at in self._warned.items() if now - at[0] < self._quiet}
        self._warned[key] = now, 0
        fields: dict[str, object] = {self._field: what, **({"repeated": repeated} if repeated else {})}
        self._log.warning("%s: %s", what, error, extra=fields)


def configure_logs(form: str, level: int) -> None:
    """Log to standard error, as `json` or `text`, what is of this level or above."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.WARNING))  # libraries log all that they read, secrets of callers as well
    logging.getLogger("eastgate").setLevel(level)
