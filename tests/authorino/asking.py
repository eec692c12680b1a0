"""Asks a real Authorino the questions of decision tables."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import grpc

from eastgate.authority.questions import Question
from eastgate.cluster.ends import ANONYMOUS
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts
from eastgate.ir.attributes import header_values
from tests.authorino.requests import FAR, answered, check_request, signer
from tests.authorino.running import Authorino, Manifest
from tests.authorino.serving import Served, spec_of
from tests.reading.jwt.mint import token

_NOT_FOUND = 404
SERVED_BY = "x-authconfig"
"""The header with the name of the AuthConfig that answered, in AuthConfigs of tables."""


@dataclass(frozen=True)
class Answer:
    """The answer of Authorino. `status` is None if Authorino cannot be asked; `detail` is the reason."""

    status: int | None
    served_by: str | None = None
    detail: str = ""


def ask(question: Question, served: Served, authorino: Authorino) -> Answer:
    """Return the answer to a row. A row that leaves out a required value cannot be sent.

    Authorino looks up a row about a host by this host, whatever the Host header of the request is. A row about an
    AuthConfig that does not serve the host of the request gets no answer.
    """
    kind, _, name = str(question.destination).partition(":")
    config = served.configs.get(name) if kind == "authconfig" else None
    host = question.host or (name if kind == "host" else _only_host(config))
    if kind == "authconfig" and host is not None and served.links.serving(host) != name:
        return Answer(_NOT_FOUND, detail="another AuthConfig serves this host, or none")
    if None in (host, question.method, question.path, question.headers) or question.source != ANONYMOUS:
        return Answer(None, detail="the row leaves out a part of the request, or has a caller with an identity")
    facts = RequestFacts(
        time=time.time(),
        host=host or "",
        method=question.method or "",
        path=question.path or "",
        headers={name: ",".join(values) for name, values in header_values(question.headers or {}).items()},
        protocol=question.http_protocol or "HTTP/1.1",
    )
    if question.claims is not None:
        facts = _with_token(facts, dict(question.claims), spec_of(config) if config is not None else {})
    try:
        response = answered(authorino.check(check_request(facts, name if kind == "host" else None)))
    except grpc.RpcError as error:
        return Answer(None, detail=f"Authorino does not answer: {error}")
    headers = dict(response.headers)
    return Answer(response.status, headers.get(SERVED_BY), headers.get("X-Ext-Auth-Reason", ""))


def _only_host(config: Manifest | None) -> str | None:
    hosts = [host for host in (config or {}).get("spec", {}).get("hosts") or () if "*" not in host]
    return hosts[0] if len(hosts) == 1 else None


def _with_token(facts: RequestFacts, claims: dict[str, Any], spec: Manifest) -> RequestFacts:
    """Put a token with these claims at the location of the identity of its issuer, or else of the first identity."""
    identities = [entry for entry in (spec.get("authentication") or {}).values() if "jwt" in entry]
    if not identities:
        return facts
    urls = [entry["jwt"].get("issuerUrl") or entry["jwt"]["jwksUrl"] for entry in identities]
    index = urls.index(claims["iss"]) if claims.get("iss") in urls else 0
    signed = token({"exp": FAR, **claims}, signer(urls[index]))
    headers = dict(facts.headers) if isinstance(facts.headers, dict) else {}
    match identities[index].get("credentials") or {}:
        case {"customHeader": {"name": name}}:
            return replace(facts, headers={**headers, name.lower(): signed})
        case {"cookie": {"name": name}}:
            return replace(facts, headers={**headers, "cookie": f"{name}={signed}"})
        case {"queryString": {"name": name}}:
            path = str(facts.path)
            return replace(facts, path=f"{path}{'&' if '?' in path else '?'}{quote(name)}={signed}")
        case {"authorizationHeader": {"prefix": prefix}}:
            return replace(facts, headers={**headers, "authorization": f"{prefix} {signed}"})
        case _:
            return replace(facts, headers={**headers, "authorization": f"Bearer {signed}"})
