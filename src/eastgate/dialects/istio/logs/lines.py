"""Reads lines of Istio's proxies: the access log of its Envoys, as text or JSON, and the log of ztunnel."""

from __future__ import annotations

from eastgate.dialects.istio.logs.access_log import read_access_log
from eastgate.dialects.istio.logs.bare import read_bare_text
from eastgate.dialects.istio.logs.ztunnel import read_ztunnel
from eastgate.dialects.logs import LoggedDecision


def read_line(line: str) -> LoggedDecision | None:
    """Return the decision that a line tells of; None where it is no line of these proxies. Raises LogLineError.

    A client chooses much of what is in a line. So a denial that is found in other text counts only where the line has
    none of the known forms.
    """
    for read in (read_ztunnel, read_access_log, read_bare_text):
        decision = read(line)
        if decision is not None:
            return decision
    return None
