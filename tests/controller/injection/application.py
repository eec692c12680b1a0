"""An application: it answers HTTP with 200 at each given `HOST:PORT`, and at `/ready` once a file exists. Every
JSON-RPC message gets the result `{}`.
"""

from __future__ import annotations

import http.server
import json
import sys
import threading
from pathlib import Path


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        is_there = not self.path.startswith("/ready") or Path(sys.argv[1]).exists()
        self._answer(200 if is_there else 500, "text/plain", f"{self.client_address[0]} {self.path}\n".encode())

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = {"jsonrpc": "2.0", "id": message.get("id"), "result": {}}
        self._answer(200, "application/json", json.dumps(answer).encode())

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    for address in sys.argv[2:]:
        host, port = address.split(":")
        server = http.server.ThreadingHTTPServer((host, int(port)), Handler)
        threading.Thread(target=server.serve_forever).start()


if __name__ == "__main__":
    main()
