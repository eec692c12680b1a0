"""An issuer of tokens on loopback, and many tokens of its key."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from bench.authorizers.schemes import AUDIENCE, Credentials

__all__ = ["issuing"]

_KEY_BITS = 2048
_EXPIRES_AT = 4102444800  # the year 2100
_KID = "bench"


class _Issuer(ThreadingHTTPServer):
    daemon_threads = True
    documents: dict[str, Any]


class _Handler(BaseHTTPRequestHandler):
    server: _Issuer

    def do_GET(self) -> None:
        body = json.dumps(self.server.documents.get(self.path)).encode()
        self.send_response(200 if self.path in self.server.documents else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in http.server
        pass


@contextmanager
def issuing(count: int) -> Iterator[Credentials]:
    """Run an issuer (RS256). Yield `count` tokens of group members, and one token of another group."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
    with _Issuer(("127.0.0.1", 0), _Handler) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        jwks = {"keys": [_public(key)]}
        server.documents = {
            "/keys": jwks,
            "/.well-known/openid-configuration": {
                "issuer": url,
                "jwks_uri": f"{url}/keys",
                "authorization_endpoint": f"{url}/authorize",
                "token_endpoint": f"{url}/token",
                "id_token_signing_alg_values_supported": ["RS256"],
            },
        }
        tokens = tuple(_token(key, url, "staff", number) for number in range(count))
        outsider = _token(key, url, "visitors", count)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield Credentials(url, jwks, tokens, outsider)
        finally:
            server.shutdown()
            thread.join()


def _public(key: rsa.RSAPrivateKey) -> dict[str, str]:
    numbers = key.public_key().public_numbers()
    size = _KEY_BITS // 8
    public = {"n": _base64(numbers.n.to_bytes(size, "big")), "e": _base64(numbers.e.to_bytes(3, "big"))}
    return {"kty": "RSA", "kid": _KID, "alg": "RS256", "use": "sig", **public}


def _token(key: rsa.RSAPrivateKey, issuer: str, group: str, number: int) -> str:
    claims = {
        "iss": issuer,
        "sub": f"user-{number}",
        "aud": AUDIENCE,
        "exp": _EXPIRES_AT,
        "iat": 1_700_000_000,
        "group": group,
    }
    parts = ({"alg": "RS256", "kid": _KID, "typ": "JWT"}, claims)
    signed = ".".join(_base64(json.dumps(part).encode()) for part in parts)
    return f"{signed}.{_base64(key.sign(signed.encode(), padding.PKCS1v15(), SHA256()))}"


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
