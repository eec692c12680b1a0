"""Requests as Envoy sends them to Authorino, with real tokens in place of claims."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from envoy.service.auth.v3.external_auth_pb2 import CheckRequest, CheckResponse

from eastgate.dialects.kuadrant.authorino.authorizer import with_token
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts
from eastgate.dialects.kuadrant.authorino.model import Jwt, Scheme
from eastgate.ir.attributes import UNKNOWN
from tests.reading.jwt.issuer import ABOUT, Issuer
from tests.reading.jwt.mint import jwk, token

FAR = 4102444800  # the year 2100
_ALGORITHMS = [*(f"{kind}{bits}" for kind in ("RS", "PS", "ES") for bits in (256, 384, 512)), "EdDSA"]


@dataclass
class Issuers:
    """Issuers on loopback that replace the issuers of policies. Each has the keys of the table, and a test key."""

    server: Issuer
    _places: dict[tuple[str, str], str] = field(default_factory=dict)

    def stand_in(self, url: str, file: Path | None) -> str:
        """Return the URL that replaces an issuer. Its keys are at `/keys` below it."""
        place = self._places.setdefault((url, str(file)), f"/issuers/{len(self._places)}")
        here = f"{self.server.url}{place}"
        published = json.loads(file.read_text(encoding="utf-8"))["keys"] if file is not None else []
        self.server.answers[f"{place}/keys"] = {"keys": [*published, jwk(signer(url))]}
        self.server.answers[f"{place}{ABOUT}"] = {
            "issuer": here,
            "jwks_uri": f"{here}/keys",
            "authorization_endpoint": f"{here}/authorize",
            "token_endpoint": f"{here}/token",
            "userinfo_endpoint": f"{here}/userinfo",  # Authorino dies if it is asked for this, and there is none
            "id_token_signing_alg_values_supported": _ALGORITHMS,
        }
        return here

    def in_place(self, spec: Mapping[str, Any], files: Mapping[str, Path]) -> dict[str, Any]:
        """Return the AuthConfig with these issuers instead of its own."""
        copied: dict[str, Any] = json.loads(json.dumps(spec))
        identities = copied.get("authentication")
        for entry in identities.values() if isinstance(identities, dict) else ():
            jwt = entry.get("jwt", {})
            if "issuerUrl" in jwt:
                jwt["issuerUrl"] = self.stand_in(jwt["issuerUrl"], files.get(jwt["issuerUrl"]))
            if "jwksUrl" in jwt:
                jwt["jwksUrl"] = self.stand_in(jwt["jwksUrl"], files.get(jwt["jwksUrl"])) + "/keys"
        return copied


def signer(url: str) -> str:
    """Return the name of the test key of an issuer."""
    return f"p256-{url}"


def with_real_token(facts: RequestFacts, scheme: Scheme, *, complete: bool = False) -> RequestFacts:
    """Return the request with a token for its claims.

    The token expires late; a `complete` token has issuer and audience.
    """
    issuers = [one.method for one in scheme.identities if isinstance(one.method, Jwt)]
    if facts.claims is None or not issuers:
        return facts
    urls = [str(one.issuer or one.jwks_url) for one in issuers]
    chosen = urls.index(str(facts.claims.get("iss"))) if facts.claims.get("iss") in urls else 0
    more: dict[str, object] = {"exp": FAR}
    if complete:
        more["iss"] = urls[chosen]
        if issuers[chosen].audiences:
            more["aud"] = sorted(issuers[chosen].audiences)[0]
    claims = {**more, **facts.claims}
    return with_token(facts, scheme, token(claims, signer(urls[chosen])))


def check_request(facts: RequestFacts, key: str | None = None) -> CheckRequest:
    """Return the message that Envoy sends about a request.

    `key` is the host under which the AuthConfig is looked up.
    """
    assert facts.headers is not UNKNOWN
    request = CheckRequest()
    attributes = request.attributes
    attributes.request.time.FromNanoseconds(int(facts.time * 1e9))
    http = attributes.request.http
    http.method, http.path, http.host = str(facts.method), str(facts.path), str(facts.host)
    http.scheme = "http" if facts.scheme is UNKNOWN else str(facts.scheme)
    http.protocol = str(facts.protocol)
    pseudo = {":authority": http.host, ":method": http.method, ":path": http.path, ":scheme": http.scheme}
    plain = {name: value for name, value in facts.headers.items() if name != "host"}  # which Envoy has as :authority
    for name, value in {**pseudo, **plain}.items():
        http.headers[name] = value
    if isinstance(facts.principal, str):
        attributes.source.principal = facts.principal
    if isinstance(facts.address, str):
        attributes.source.address.socket_address.address = facts.address
    if isinstance(facts.certificate, str):
        attributes.source.certificate = quote(facts.certificate, safe="")
    if key is not None:
        attributes.context_extensions["host"] = key
    return request


@dataclass(frozen=True)
class Answered:
    """The answer of Authorino: the status, and headers for the application or for the client."""

    status: int
    headers: tuple[tuple[str, str], ...]


def answered(response: CheckResponse) -> Answered:
    allowed = response.status.code == 0
    told = response.ok_response if allowed else response.denied_response
    headers = tuple(sorted((one.header.key, one.header.value) for one in told.headers))
    return Answered(200 if allowed else response.denied_response.status.code, headers)


def is_known(facts: RequestFacts) -> bool:
    """Return whether all attributes that every request has are known."""
    return UNKNOWN not in (facts.host, facts.method, facts.path, facts.headers) and not facts.presented
