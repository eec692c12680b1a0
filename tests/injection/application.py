"""An application: answers HTTP with 200 at each `HOST:PORT` that it is given; `/ready` only once a file is there."""

from __future__ import annotations

import http.server
import sys
import threading
from pathlib import Path


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        is_there = not self.path.startswith("/ready") or Path(sys.argv[1]).exists()
        body = f"{self.client_address[0]} {self.path}\n".encode()
        self.send_response(200 if is_there else 500)
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
