"""An independent implementation of AuthPolicies by the proposal, and of Authorino's schemes, on plain manifests.

It shares no code with the product. All attributes of a call are known.
"""

from __future__ import annotations

import base64
import json
import posixpath
import re
from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]

MISSING = object()


@dataclass(frozen=True)
class Call:
    """One request to the Gateway."""

    host: str
    method: str
    path: str  # with its query
    sni: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    claims: str | None = None  # of a verified token, as JSON


class ConditionError(Exception):
    """A condition with an error."""


# Hosts


def _plain_host(host: str) -> str:
    return host.lower().partition(":")[0].removesuffix(".")


def _takes(pattern: str, host: str) -> bool:
    if pattern == "*":
        return True
    labels, wanted = host.split("."), pattern.split(".")
    if wanted[0] == "*":
        return len(labels) >= len(wanted) and labels[-(len(wanted) - 1) :] == wanted[1:]
    return labels == wanted


def _inside(inner: str, outer: str) -> bool:
    """Return whether every host of one is a host of the other. A label that no test uses replaces `*`."""
    if inner == "*":
        return outer == "*"
    return _takes(outer, inner.replace("*", "any", 1))


def _closeness(pattern: str) -> tuple[bool, int]:
    return not pattern.startswith("*"), len(pattern.split(".")) if pattern != "*" else 0


class Rulebook:
    """One Gateway with one listener for every host, its routes, Secrets, and AuthPolicies on all of them."""

    def __init__(self, manifests: list[Manifest]) -> None:
        self.manifests = manifests

    def _of(self, kind: str) -> list[Manifest]:
        return [one for one in self.manifests if one["kind"] == kind]

    # Valid policies

    def rejected(self, policy: Manifest) -> bool:
        spec = policy["spec"]
        target = self._hostnames(spec["targetRef"])
        rules = spec.get("rules", [])
        written = [host for rule in rules for host in rule.get("hosts", [])]
        if spec["targetRef"]["kind"] == "HTTPRoute" and not all(any(_inside(h, t) for t in target) for h in written):
            return True
        meant = written + (target if not rules or any("hosts" not in rule for rule in rules) else [])
        each = [set(scheme["hosts"]) for scheme in spec.get("authSchemes", [])]
        if any(one & other for place, one in enumerate(each) for other in each[:place]):
            return True
        return not all(any(_inside(host, one) for one in meant) for hosts in each for host in hosts)

    def _hostnames(self, target: Manifest) -> list[str]:
        (found,) = (one for one in self._of(target["kind"]) if one["metadata"]["name"] == target["name"])
        if target["kind"] == "HTTPRoute":
            return found["spec"].get("hostnames") or ["*"]
        return [listener.get("hostname", "*") for listener in found["spec"]["listeners"]]

    # Requests

    def status(self, call: Call, route: str | None = None) -> int:
        """Return the status for a client of the Gateway. With `route`, requests of other routes get 404."""
        at_gateway = self._guarded("Gateway", "g", call)
        if at_gateway != 200:
            return at_gateway
        taken = self._route(_plain_host(call.host))
        if taken is None or (route is not None and taken != route):
            return 404
        return self._guarded("HTTPRoute", taken, call)

    def _route(self, host: str) -> str | None:
        found = [
            (_closeness(name), one["metadata"]["name"])
            for one in self._of("HTTPRoute")
            for name in one["spec"].get("hostnames") or ["*"]
            if _takes(name, host)
        ]
        best = max((closeness for closeness, _ in found), default=None)
        return min((name for closeness, name in found if closeness == best), default=None)

    def in_force(self, kind: str, name: str) -> Manifest | None:
        """Return the oldest policy on a target, without audit mode. One without a creation time is the youngest."""
        on_it = [
            one
            for one in self._of("AuthPolicy")
            if (one["spec"]["targetRef"]["kind"], one["spec"]["targetRef"]["name"]) == (kind, name)
            and one["metadata"].get("annotations", {}).get("eastgate.dev/mode") != "audit"
        ]
        on_it.sort(key=lambda one: one["metadata"]["name"])
        on_it.sort(key=lambda one: one["metadata"].get("creationTimestamp", "9999"))
        return on_it[0] if on_it else None

    def _guarded(self, kind: str, name: str, call: Call) -> int:
        policy = self.in_force(kind, name)
        if policy is None:
            return 200
        rules = policy["spec"].get("rules", [])
        if rules and not any(_selects(rule, call) for rule in rules):
            return 200
        host = _plain_host(call.host)
        found = [
            (_closeness(one), place)
            for place, scheme in enumerate(policy["spec"].get("authSchemes", []))
            for one in scheme["hosts"]
            if _takes(one, host)
        ]
        if not found:
            return 404
        scheme = policy["spec"]["authSchemes"][max(found)[1]]
        return Scheme(scheme, call, self._of("Secret")).status()


def _selects(rule: Manifest, call: Call) -> bool:
    names = {_plain_host(call.host), call.sni.lower() if call.sni else _plain_host(call.host)}
    hosts = any(_takes(pattern, name) for pattern in rule.get("hosts", ["*"]) for name in names)
    methods = any(one in ("*", call.method) for one in rule.get("methods", ["*"]))
    return hosts and methods and any(_path(one, call.path) for one in rule.get("paths", ["*"]))


def _path(pattern: str, raw: str) -> bool:
    path = _passed_on(raw).partition("?")[0]
    if pattern.startswith("*"):
        return path.endswith(pattern[1:])
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern


def _passed_on(raw: str) -> str:
    """Return a path as the proxy passes it on: without dot segments and double slashes."""
    written, mark, query = raw.partition("?")
    path = posixpath.normpath(re.sub("/+", "/", written))
    return path + ("/" if written.endswith("/") and path != "/" else "") + mark + query


# Schemes


class Scheme:
    """One scheme with one request."""

    def __init__(self, scheme: Manifest, call: Call, secrets: list[Manifest]) -> None:
        self.scheme, self.call, self.secrets = scheme, call, secrets
        whole = _passed_on(call.path)
        path, _, query = whole.partition("?")
        headers = dict(call.headers)
        http = {"host": call.host, "method": call.method, "path": whole, "headers": headers}
        self.json: Manifest = {
            "context": {"request": {"http": http}},
            "request": {**http, "url_path": path, **({"query": query} if query else {})},
            "auth": {},
        }

    def status(self) -> int:
        codes = {name: denial["code"] for name, denial in self.scheme.get("denyWith", {}).items()}
        unauthenticated, unauthorized = codes.get("unauthenticated", 401), codes.get("unauthorized", 403)
        try:
            if not self._all(self.scheme.get("when", [])):
                return 200
        except ConditionError:
            return int(unauthorized)
        try:
            self.json["auth"]["identity"] = self._identity()
        except (ConditionError, LookupError):
            return int(unauthenticated)
        try:
            return 200 if all(self._agrees(one) for one in _by_priority(self.scheme, "authorization")) else unauthorized
        except ConditionError:
            return int(unauthorized)

    def _identity(self) -> object:
        if not self.scheme.get("identity"):
            return {"anonymous": True}
        for one in _by_priority(self.scheme, "identity"):
            if self._all(one.get("when", [])):
                found = self._recognized(one)
                if found is not None:
                    return found
        raise LookupError

    def _recognized(self, one: Manifest) -> object:
        if "anonymous" in one:
            return {"anonymous": True}
        if "oidc" in one:
            return json.loads(self.call.claims) if self.call.claims is not None else None
        given = self._credential(one.get("credentials", {}))
        wanted = one["apiKey"]["labelSelectors"].items()
        for secret in self.secrets:
            held = secret.get("stringData", {}).get("api_key")
            if held is None:
                held = base64.b64decode(secret["data"]["api_key"]).decode()
            if given and held == given and wanted <= secret["metadata"].get("labels", {}).items():
                return {"metadata": secret["metadata"]}
        return None

    def _credential(self, credentials: Manifest) -> str:
        headers, key = dict(self.call.headers), credentials.get("keySelector", "Bearer")
        match credentials.get("in", "authorization_header"):
            case "authorization_header":
                prefix, _, rest = headers.get("authorization", "").partition(" ")
                return rest if prefix == key else ""
            case "custom_header":
                return headers.get(key.lower(), "")
            case "query":
                return dict(part.split("=", 1) for part in _parts(self.call.path.partition("?")[2], "&")).get(key, "")
            case _:
                return dict(part.split("=", 1) for part in _parts(headers.get("cookie", ""), ";")).get(key, "")

    def _agrees(self, one: Manifest) -> bool:
        return not self._all(one.get("when", [])) or self._all(one["json"]["rules"])

    # Conditions, evaluated from left to right as in Authorino

    def _all(self, conditions: list[Manifest]) -> bool:
        return all(self._holds(one) for one in conditions)

    def _holds(self, one: Manifest) -> bool:
        if "patternRef" in one:
            return self._all(self.scheme["patterns"][one["patternRef"]])
        if "all" in one:
            return self._all(one["all"])
        if "any" in one:
            # A set contributes its patterns one by one, as in Authorino: one of them is enough.
            sets = self.scheme.get("patterns", {})
            parts = (sets[part["patternRef"]] if "patternRef" in part else [part] for part in one["any"])
            return any(self._holds(pattern) for patterns in parts for pattern in patterns)
        if "predicate" in one:
            return self._predicate(one["predicate"])
        found = _select(self.json, one["selector"])
        match one["operator"]:
            case "eq":
                return _text(found) == str(one["value"])
            case "neq":
                return _text(found) != str(one["value"])
            case "incl":
                return str(one["value"]) in _texts(found)
            case "excl":
                return str(one["value"]) not in _texts(found)
            case _:
                return re.search(one["value"], _text(found)) is not None

    def _predicate(self, text: str) -> bool:
        """Evaluate `path.to.it == 'value'`. A missing member is an error."""
        path, _, value = text.partition(" == ")
        found = _select(self.json, path)
        if found is MISSING:
            raise ConditionError
        return bool(found == value.strip("'"))


def _parts(text: str, separator: str) -> list[str]:
    return [part.strip() for part in text.split(separator) if "=" in part]


def _by_priority(scheme: Manifest, section: str) -> list[Manifest]:
    return sorted(scheme.get(section, []), key=lambda one: one.get("priority", 0))


def _select(document: object, path: str) -> object:
    found = document
    for step in path.split("."):
        if step == "#" and isinstance(found, list):
            found = len(found)
        elif isinstance(found, list) and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        elif isinstance(found, dict) and step in found:
            found = found[step]
        else:
            return MISSING
    return found


def _text(found: object) -> str:
    if found is MISSING or found is None:
        return ""
    return found if isinstance(found, str) else json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def _texts(found: object) -> list[str]:
    if found is MISSING or found is None:
        return []
    return [_text(one) for one in found] if isinstance(found, list) else [_text(found)]
