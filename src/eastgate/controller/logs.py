"""The log of the controller: one line for each event, as JSON for machines or as text for people."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from eastgate.diagnostics.printable import printable

__all__ = ["JsonFormatter", "configure_logs"]

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object, with what was given to it as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields: dict[str, object] = {
            "time": time,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": printable(record.getMessage()),
        }
        fields |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def configure_logs(form: str, level: int) -> None:
    """Log to standard error, as `json` or `text`, what is of this level or above."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if form == "json" else text)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.WARNING))  # libraries log all that they read, secrets of callers as well
    logging.getLogger("eastgate").setLevel(level)
