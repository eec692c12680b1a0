"""A client: one GET, and the status on standard output, or what became of the connection."""

from __future__ import annotations

import http.client
import sys


def main() -> None:
    host, port, path = sys.argv[1:]
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        print(answer.status, answer.read().decode().strip())
    except TimeoutError:
        print("timeout")
    except (http.client.HTTPException, OSError) as error:
        print("closed", type(error).__name__)


if __name__ == "__main__":
    main()
