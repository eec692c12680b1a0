"""The decision on a request at a Gateway with AuthPolicies (`kuadrant.io/v1`): routing, then Authorino.

It shares no code with the product. It supports the auth schemes that `kuadrant_paths_generate` draws. An error in a
condition denies by ruling 45 (upstream skips the condition).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.worlds.kuadrant_paths_oracle import (
    ROUTE_KINDS,
    Manifest,
    Path,
    Rules,
    Topology,
    gateway_key,
    is_attached,
    key_of,
    rule_names,
    takes,
)

AUTHORINO_NAMESPACE = "kuadrant-system"


@dataclass(frozen=True)
class Call:
    """A request to a port of a Gateway."""

    gateway: str  # namespace/name
    port: int
    host: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    subject: str | None = None  # of a verified token


class ConditionError(Exception):
    """A condition with an error."""


# Routing


def route_call(topology: Topology, call: Call) -> Path | None:
    """Return the path that a request takes, or None without a route."""
    gateway = topology.find("Gateway", call.gateway)
    assert gateway is not None
    listeners = [
        listener
        for listener in gateway["spec"]["listeners"]
        if listener["port"] == call.port and takes(listener.get("hostname", "*"), call.host)
    ]
    if not listeners:
        return None
    listener = max(listeners, key=lambda taken: _specificity(taken.get("hostname", "*")))
    candidates = [
        (rank, Path(call.gateway, listener["name"], route["kind"], key_of(route), rule))
        for route in topology.of_kind(*ROUTE_KINDS)
        if _is_parent(gateway, listener, route)
        for rank, rule in _matches(route, call)
    ]
    return min(candidates, default=(None, None), key=lambda candidate: candidate[0] or ())[1]


def _is_parent(gateway: Manifest, listener: Manifest, route: Manifest) -> bool:
    return any(
        gateway_key(reference, route) == key_of(gateway) and is_attached(gateway, listener, route, reference)
        for reference in route["spec"]["parentRefs"]
    )


def _specificity(hostname: str) -> tuple[bool, int]:
    """Return the rank of a hostname. The highest rank wins."""
    return not hostname.startswith("*"), 0 if hostname == "*" else len(hostname)


Rank = tuple[object, ...]


def _matches(route: Manifest, call: Call) -> Iterator[tuple[Rank, str]]:
    """Yield the rank and the rule of each match that fits a request. The lowest rank wins."""
    hostnames = [name for name in route["spec"].get("hostnames") or ["*"] if takes(name, call.host)]
    if not hostnames:
        return
    exact, length = max(_specificity(name) for name in hostnames)
    created = route["metadata"].get("creationTimestamp", "9999")
    for position, (rule, name) in enumerate(zip(route["spec"]["rules"], rule_names(route), strict=True)):
        for match in rule.get("matches") or [{}]:
            rank = _rank(match, call) if route["kind"] == "HTTPRoute" else _rank_grpc(match, call)
            if rank is not None:
                yield (not exact, -length, *rank, created, key_of(route), position), name


def _rank(match: Manifest, call: Call) -> Rank | None:
    """Return the rank of an HTTPRoute's match: exact paths, long prefixes, methods, headers."""
    path = match.get("path", {"type": "PathPrefix", "value": "/"})
    asked, wanted = call.path.partition("?")[0], path["value"]
    exact = path["type"] == "Exact"
    prefix = wanted.rstrip("/")
    if not (asked == wanted if exact else asked == prefix or asked.startswith(prefix + "/")):
        return None
    if match.get("method", call.method) != call.method or not _has_headers(match, call):
        return None
    return (not exact, -len(wanted), "method" not in match, -len(match.get("headers", [])))


def _rank_grpc(match: Manifest, call: Call) -> Rank | None:
    """Return the rank of a GRPCRoute's match: long services, long methods, headers."""
    wanted = match.get("method", {})
    service, _, method = call.path.removeprefix("/").partition("/")
    if wanted.get("service", service) != service or wanted.get("method", method) != method:
        return None
    if call.method != "POST" or not _has_headers(match, call):
        return None
    lengths = (-len(wanted.get("service", "")), -len(wanted.get("method", "")))
    return (*lengths, -len(match.get("headers", [])), 0)


def _has_headers(match: Manifest, call: Call) -> bool:
    given = dict(call.headers)
    return all(given.get(header["name"]) == header["value"] for header in match.get("headers", []))


# Evaluation of the effective policy


def statuses(topology: Topology, call: Call) -> set[int]:
    """Return the statuses that a client may see.

    There are several if more than one identity of a priority recognizes the caller or fails, since any may be first.
    """
    path = route_call(topology, call)
    if path is None:
        return {404}
    rules = topology.effective(path)
    return {200} if rules is None else Evaluation(rules, call, topology.of_kind("Secret")).statuses()


class Evaluation:
    """Effective rules with one request."""

    def __init__(self, rules: Rules, call: Call, secrets: list[Manifest]) -> None:
        self._rules, self._call, self._secrets = rules, call, secrets
        path, _, query = call.path.partition("?")
        request = {"method": call.method, "host": call.host, "path": call.path, "url_path": path, "query": query}
        self._request: Manifest = {**request, "headers": dict(call.headers)}

    def statuses(self) -> set[int]:
        unauthenticated = self._code("unauthenticated", 401)
        unauthorized = self._code("unauthorized", 403)
        when = self._rules.get("conditions#")
        try:
            if when is not None and not all(self._predicate(item["predicate"]) for item in when.value):
                return {200}
        except ConditionError:
            return {unauthorized}
        identities = self._identities() or [None]
        return {unauthenticated if held is None else self._authorized(held, unauthorized) for held in identities}

    def _authorized(self, identity: Manifest, unauthorized: int) -> int:
        return 200 if self._is_authorized(identity) else unauthorized

    def _code(self, denial: str, default: int) -> int:
        rule = self._rules.get(f"response.{denial}#")
        return default if rule is None else int(rule.value.get("code", default))

    def _section(self, name: str) -> list[Manifest]:
        entries = [rule.value for key, rule in self._rules.items() if key.startswith(f"{name}#")]
        return sorted(entries, key=lambda entry: entry.get("priority", 0))

    # Identities

    def _identities(self) -> list[Manifest | None]:
        """Return the possible identities of the caller by the first priority with an answer; None for an error."""
        entries = self._section("authentication")
        if not entries:
            return [{"anonymous": True}]
        for priority in sorted({entry.get("priority", 0) for entry in entries}):
            group = [entry for entry in entries if entry.get("priority", 0) == priority]
            if identities := [identity for entry in group for identity in self._guarded(entry)]:
                return identities
        return []

    def _guarded(self, entry: Manifest) -> list[Manifest | None]:
        try:
            return list(self._recognize(entry)) if self._all(entry.get("when", []), {}) else []
        except ConditionError:
            return [None]

    def _recognize(self, entry: Manifest) -> Iterator[Manifest]:
        if "anonymous" in entry:
            yield {"anonymous": True}
            return
        if "jwt" in entry:
            yield from [] if self._call.subject is None else [{"sub": self._call.subject}]
            return
        given = self._credential(entry.get("credentials", {}))
        wanted = entry["apiKey"]["selector"]["matchLabels"].items()
        everywhere = entry["apiKey"].get("allNamespaces", False)
        for secret in self._secrets:
            near = everywhere or secret["metadata"]["namespace"] == AUTHORINO_NAMESPACE
            labels = secret["metadata"].get("labels", {})
            if near and given and secret["stringData"]["api_key"] == given and wanted <= labels.items():
                yield {"metadata": secret["metadata"]}

    def _credential(self, credentials: Manifest) -> str:
        headers = self._request["headers"]
        if "customHeader" in credentials:
            return str(headers.get(credentials["customHeader"]["name"].lower(), ""))
        if "queryString" in credentials:
            pairs = (pair.partition("=") for pair in self._request["query"].split("&"))
            return next((value for name, _, value in pairs if name == credentials["queryString"]["name"]), "")
        prefix, _, rest = headers.get("authorization", "").partition(" ")
        return rest if prefix == credentials.get("authorizationHeader", {}).get("prefix", "Bearer") else ""

    # Authorization

    def _is_authorized(self, identity: Manifest) -> bool:
        try:
            return all(
                not self._all(entry.get("when", []), identity)
                or self._all(entry["patternMatching"]["patterns"], identity)
                for entry in self._section("authorization")
            )
        except ConditionError:
            return False

    def _all(self, conditions: list[Manifest], identity: Manifest) -> bool:
        return all(self._holds(condition, identity) for condition in conditions)

    def _holds(self, condition: Manifest, identity: Manifest) -> bool:
        if "patternRef" in condition:
            return self._all(self._set(condition["patternRef"]), identity)
        if "all" in condition:
            return self._all(condition["all"], identity)
        if "any" in condition:
            return any(self._holds(part, identity) for part in self._alternatives(condition["any"]))
        if "predicate" in condition:
            return self._predicate(condition["predicate"])
        selected: object = {"request": self._request, "auth": {"identity": identity}}
        for step in condition["selector"].split("."):
            selected = selected.get(step, "") if isinstance(selected, dict) else ""
        text = {True: "true", False: "false"}.get(selected, selected) if isinstance(selected, bool) else str(selected)
        match condition["operator"]:
            case "eq":
                return bool(text == condition["value"])
            case "neq":
                return bool(text != condition["value"])
            case _:
                return re.search(condition["value"], str(text)) is not None

    def _alternatives(self, parts: list[Manifest]) -> Iterator[Manifest]:
        """Yield the parts of an `any`. A set of patterns yields each of its patterns, as in Authorino."""
        for part in parts:
            yield from self._set(part["patternRef"]) if "patternRef" in part else [part]

    def _set(self, name: str) -> list[Manifest]:
        """Return a set of patterns of any policy. A missing set is an error, by ruling 45."""
        rule = self._rules.get(f"patterns#{name}")
        if rule is None:
            raise ConditionError
        patterns: list[Manifest] = rule.value["allOf"]
        return patterns

    def _predicate(self, text: str) -> bool:
        """Evaluate `X == 'v'`, `X != 'v'`, `X.startsWith('v')` and `'v' in request.headers`, and `!` of them."""
        if text.startswith("!"):
            return not self._predicate(text[1:].removeprefix("(").removesuffix(")"))
        if " in " in text:
            return text.partition(" in ")[0].strip("'") in self._request["headers"]
        if ".startsWith(" in text:
            operand, _, value = text.partition(".startsWith(")
            return self._operand(operand).startswith(value.removesuffix(")").strip("'"))
        operand, operator, value = text.split(" ")
        return (self._operand(operand) == value.strip("'")) == (operator == "==")

    def _operand(self, text: str) -> str:
        """Return an attribute or header of the request. A missing header is an error."""
        name = text.removeprefix("request.")
        if not name.startswith("headers["):
            return str(self._request[name])
        header = name.removeprefix("headers['").removesuffix("']")
        if header not in self._request["headers"]:
            raise ConditionError
        return str(self._request["headers"][header])
