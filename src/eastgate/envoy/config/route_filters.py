"""Filters of Gateway API's routes in Envoy's words."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.cluster import GrpcRule, HeaderModifier, PathModifier, Redirect, RouteFilter, RouteRule, UrlRewrite
from eastgate.cluster.routing import Routed
from eastgate.envoy.config.spelling import spell_path
from eastgate.envoy.config.typed import Plain

_SET, _ADD = "OVERWRITE_IF_EXISTS_OR_ADD", "APPEND_IF_EXISTS_OR_ADD"
_RESPONSE_CODES = {
    301: "MOVED_PERMANENTLY",
    302: "FOUND",
    303: "SEE_OTHER",
    307: "TEMPORARY_REDIRECT",
    308: "PERMANENT_REDIRECT",
}
_USUAL_PORTS = {"http": 80, "https": 443}


def header_changes(filters: Iterable[RouteFilter]) -> Plain:
    """Return what filters change of headers, in the order in which they stand."""
    changes: Plain = {}
    for each in filters:
        if not isinstance(each, HeaderModifier):
            continue
        kind = "request" if each.type == HeaderModifier.REQUEST else "response"
        added = changes.setdefault(f"{kind}_headers_to_add", [])
        added += [_header(name, value, _SET) for name, value in each.set]
        added += [_header(name, value, _ADD) for name, value in each.add]
        changes.setdefault(f"{kind}_headers_to_remove", []).extend(each.remove)
    return {name: value for name, value in changes.items() if value}


def _header(name: str, value: str, action: str) -> Plain:
    escaped = value.replace("%", "%%")  # Envoy would look for operators
    return {"header": {"key": name, "value": escaped}, "append_action": action, "keep_empty_value": True}


def rewrite_action(rewrite: UrlRewrite, prefix: str | None) -> Plain:
    """Return what a rewrite changes of a forwarded request."""
    action: Plain = {"host_rewrite_literal": rewrite.hostname} if rewrite.hostname is not None else {}
    return action | _path_change(rewrite.path, prefix)


def redirect_action(redirect: Redirect, prefix: str | None, scheme: str, port: int) -> Plain:
    """Return the redirect that a gateway answers with. `scheme` and `port` are those that requests came in by."""
    action: Plain = {"response_code": _RESPONSE_CODES[redirect.status], **_path_change(redirect.path, prefix)}
    if redirect.path is not None and not redirect.path.prefix:
        del action["regex_rewrite"]
        action["path_redirect"] = redirect.path.value
    if redirect.scheme is not None:
        action["scheme_redirect"] = redirect.scheme
    if redirect.hostname is not None:
        action["host_redirect"] = redirect.hostname
    new_port = redirect.port or (_USUAL_PORTS[redirect.scheme] if redirect.scheme is not None else port)
    keeps_port = redirect.hostname is None and port not in _USUAL_PORTS.values()  # that of the request's host
    if keeps_port or new_port != _USUAL_PORTS[redirect.scheme or scheme]:
        action["port_redirect"] = new_port
    return action


def _path_change(path: PathModifier | None, prefix: str | None) -> Plain:
    """Return the change of a path, all of it or its prefix. A query stays."""
    if path is None:
        return {}
    if not path.prefix:
        return _regex("^[^?#]*", _literal(path.value))
    stem, matched = path.value.rstrip("/"), spell_path(prefix or "")
    if not stem:
        return _regex(f"^{matched}/?([^?#]*)", r"/\1")
    return _regex(f"^{matched}(/[^?#]*)?", rf"{_literal(stem)}\1")


def _regex(pattern: str, substitution: str) -> Plain:
    return {"regex_rewrite": {"pattern": {"regex": pattern}, "substitution": substitution}}


def _literal(text: str) -> str:
    """Return a text for the place of a match, in which a backslash refers to a group."""
    return text.replace("\\", "\\\\")


def timeouts(routed: Routed | None) -> Plain:
    """Return the time limits of a rule. Without them a request may take as long as it takes: streams are requests."""
    rule = routed.spec if routed is not None else None
    if not isinstance(rule, RouteRule | GrpcRule):
        return {"timeout": "0s"}
    limits = [limit for limit in (rule.timeouts.request, rule.timeouts.backend_request) if limit]
    return {"timeout": f"{min(limits) / 1000}s" if limits else "0s"}
