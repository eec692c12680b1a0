"""An OpenID Connect issuer in a process of its own, for tests: `python -m tests.programs.oidc_issuer PORT [FOLDER]`.

    GET  /realms/toystore/.well-known/openid-configuration     GET /realms/toystore/keys
    POST /realms/toystore/token    claims as a form; `kid` signs with that key, `lifetime` is in seconds
    POST /control/rotate           a new key signs from now on; the others stay published
    POST /control/withdraw         takes the key `kid` out of the key set; `kid=*` takes all
    POST /control/answer           `status` is the answer to everything below /realms from now on; 200: as usual
    GET  /control/asked            how often each path was asked

With a folder it speaks TLS, with the `key.pem` and `chain.pem` in there.
"""

from __future__ import annotations

import json
import ssl
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode

from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.programs.processes import Processes, free_port

REALM = "/realms/toystore"
DISCOVERY = f"{REALM}/.well-known/openid-configuration"
KEYS = f"{REALM}/keys"
_LIFETIME_SECONDS = 300


class Issuer:
    """The keys of an issuer, and the tokens that it signs."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.status = 200
        self.asked: Counter[str] = Counter()
        self._keys: dict[str, RSAKey] = {}
        self._published: list[str] = []
        self._lock = threading.Lock()
        self.rotate({})

    def rotate(self, _form: dict[str, str]) -> object:
        """Sign with a new key from now on."""
        with self._lock:
            kid = f"key-{len(self._keys) + 1}"
            self._keys[kid] = RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"})
            self._published.append(kid)
        return {"kid": kid}

    def withdraw(self, form: dict[str, str]) -> object:
        """Publish a key no longer."""
        with self._lock:
            self._published = [] if form["kid"] == "*" else [kid for kid in self._published if kid != form["kid"]]
        return {"published": self._published}

    def answer(self, form: dict[str, str]) -> object:
        """Answer everything with a status."""
        self.status = int(form["status"])
        return {}

    def token(self, form: dict[str, str]) -> object:
        """Sign a token."""
        kid = form.pop("kid", next(reversed(self._keys)))
        lifetime = int(form.pop("lifetime", _LIFETIME_SECONDS))
        now = int(time.time())
        claims = {"iss": self.url, "iat": now - 600, "exp": now + lifetime, **form}
        token = jwt.encode({"alg": "RS256", "kid": kid}, claims, self._keys[kid])
        return {"access_token": token, "token_type": "Bearer", "expires_in": lifetime}

    def document(self, path: str) -> object | None:
        """Return what is published at a path."""
        match path:
            case "/control/asked":
                return dict(self.asked)
            case _ if path == DISCOVERY:
                return {
                    "issuer": self.url,
                    "jwks_uri": f"{self.url}/keys",
                    "token_endpoint": f"{self.url}/token",
                    "id_token_signing_alg_values_supported": ["RS256"],
                    "response_types_supported": ["token"],
                    "subject_types_supported": ["public"],
                }
            case _ if path == KEYS:
                return {"keys": [self._keys[kid].as_dict(private=False) for kid in self._published]}
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    issuer: Issuer

    def do_GET(self) -> None:
        self._answer(self.issuer.document(self.path))

    def do_POST(self) -> None:
        form = dict(parse_qsl(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()))
        actions: dict[str, Callable[[dict[str, str]], object]] = {
            f"{REALM}/token": self.issuer.token,
            "/control/rotate": self.issuer.rotate,
            "/control/withdraw": self.issuer.withdraw,
            "/control/answer": self.issuer.answer,
        }
        action = actions.get(self.path)
        self._answer(action(form) if action is not None else None)

    def _answer(self, document: object | None) -> None:
        self.issuer.asked[self.path] += 1
        status = self.issuer.status if self.path.startswith(REALM) else 200
        body = json.dumps(document).encode() if status == 200 else b""
        self.send_response(404 if document is None else status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in http.server
        pass


def serve(port: int, folder: Path | None) -> None:
    """Serve until the process is stopped."""
    scheme = "http" if folder is None else "https"
    _Handler.issuer = Issuer(f"{scheme}://127.0.0.1:{port}{REALM}")
    server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    if folder is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "chain.pem", folder / "key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


class OidcIssuer(Processes):
    """The issuer in a process. `url` is its name, as in the `iss` claim of its tokens."""

    def __init__(self, folder: Path, tls: Path | None = None) -> None:
        super().__init__(folder)
        self.port = free_port()
        self._tls = tls
        self._base = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}"
        self.url = f"{self._base}{REALM}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        arguments = [str(self.port), *([str(self._tls)] if self._tls is not None else [])]
        self.run([sys.executable, "-m", "tests.programs.oidc_issuer", *arguments])
        self.wait_until(self._answers)

    def token(self, **claims: object) -> str:
        """Return a token with these claims; see the module for `kid` and `lifetime`."""
        return cast("str", self._ask(f"{REALM}/token", claims)["access_token"])

    def rotate(self) -> str:
        """Make it sign with a new key, and return its id."""
        return cast("str", self._ask("/control/rotate", {})["kid"])

    def withdraw(self, kid: str = "*") -> None:
        """Make it publish a key no longer, or none at all."""
        self._ask("/control/withdraw", {"kid": kid})

    def answer(self, status: int) -> None:
        """Make it answer everything with a status."""
        self._ask("/control/answer", {"status": status})

    @property
    def asked(self) -> dict[str, int]:
        """Return how often each path was asked."""
        return cast("dict[str, int]", self._ask("/control/asked", None))

    def _answers(self) -> bool:
        try:
            return bool(self._ask("/control/asked", None) is not None)
        except OSError:
            return False

    def _ask(self, path: str, form: dict[str, Any] | None) -> Any:
        context = ssl.create_default_context(cafile=str(self._tls / "roots.pem")) if self._tls is not None else None
        data = None if form is None else urlencode(form).encode()
        with urllib.request.urlopen(f"{self._base}{path}", data, 60, context=context) as response:  # noqa: S310
            return json.load(response)


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
