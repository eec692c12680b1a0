"""A client: sends one GET, or a POST of a `--message`, and prints the status or the end of the connection."""

from __future__ import annotations

import argparse
import http.client


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("path")
    parser.add_argument("--host")
    parser.add_argument("--message")
    given = parser.parse_args()
    headers = {"host": given.host} if given.host else {}
    if given.message:
        headers |= {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    connection = http.client.HTTPConnection(given.address, given.port, timeout=30)
    try:
        connection.request("POST" if given.message else "GET", given.path, given.message, headers)
        answer = connection.getresponse()
        print(answer.status, answer.read().decode().strip())
    except TimeoutError:
        print("timeout")
    except (http.client.HTTPException, OSError) as error:
        print("closed", type(error).__name__)


if __name__ == "__main__":
    main()
