"""Parser of log lines of Istio's proxies: the access log of Envoys, as text or JSON, and the log of ztunnel."""

from __future__ import annotations

from eastgate.basics.regexes import regex
from eastgate.dialects.istio.logs.access_log import cause_of, cause_of_name, read_access_log
from eastgate.dialects.istio.logs.codes import CUT_OFF, NO_POLICY_DECIDED
from eastgate.dialects.istio.logs.ztunnel import read_ztunnel
from eastgate.dialects.logs import LoggedDecision, LogLineError

# Search for a denial in other text: the details alone, or a line of Envoy's debug log.


_DETAILS = regex(r"rbac_access_denied_matched_policy\[\S{0,600}\]|jwt_authn_access_denied\{[^}\s]{0,600}\}")
_DEBUG = regex(r"\benforced denied, matched policy (?P<name>[^\s,]{1,600})")
_NAME = regex(r"(?:istio-ext-authz-[^\s\[\]]*)?ns\[[^\s\[\]]+\]-policy\[[^\s\[\]]+\]-rule\[[0-9]+\]\S{0,60}")
_BODY = "RBAC: access denied"
_PROXY = "Istio's Envoy"


def read_bare_text(line: str) -> LoggedDecision | None:
    """Return the denial in a text, without caller and destination. Raises LogLineError if the text names no policy."""
    text = line.strip()
    cause = None
    if match := _DEBUG.search(text):
        cause = cause_of_name(match["name"])
    elif match := _DETAILS.search(text):
        cause = cause_of(match[0], "-", "-")
    elif match := _NAME.fullmatch(text):
        cause = cause_of_name(match[0])
    elif text == _BODY:
        message = f"`{_BODY}` is Envoy's answer to every request that a policy denies"
        way_out = "give the line of the destination's proxy: kubectl logs <pod> -c istio-proxy"
        raise LogLineError(NO_POLICY_DECIDED, message, way_out)
    if cause is None:
        return None
    if cause.policy is None:
        message = f"the text contains only this: {cause.words}"
        raise LogLineError(CUT_OFF, message, "give the whole line of the access log, with caller and destination")
    return LoggedDecision(_PROXY, cause)


def read_line(line: str) -> LoggedDecision | None:
    """Return the decision in a line, or None if the line is not from these proxies. Raises LogLineError.

    Clients control much of a line. So a denial inside other text counts only if the line has none of the known formats.
    """
    for read in (read_ztunnel, read_access_log, read_bare_text):
        decision = read(line)
        if decision is not None:
            return decision
    return None
