"""Calls `HOST PORT [NAME=VALUE...]` repeatedly until standard input ends, then prints all answers as JSON.

Every second request has a new connection. The others use one connection as long as it stays open.
"""

from __future__ import annotations

import collections
import http.client
import itertools
import json
import select
import sys


def call(connection: http.client.HTTPConnection, headers: dict[str, str]) -> str:
    try:
        connection.request("GET", "/", headers=headers)
        answer = connection.getresponse()
        answer.read()
    except (http.client.HTTPException, OSError) as error:
        connection.close()
        return type(error).__name__
    return str(answer.status)


def main() -> None:
    host, port = sys.argv[1], int(sys.argv[2])
    headers = dict(argument.split("=", 1) for argument in sys.argv[3:])
    answers: collections.Counter[str] = collections.Counter()
    lasting = http.client.HTTPConnection(host, port, timeout=60)
    for number in itertools.count():
        single = http.client.HTTPConnection(host, port, timeout=60)
        answers[call(single if number % 2 else lasting, headers)] += 1
        single.close()
        if select.select([sys.stdin], [], [], 0.02)[0]:
            break
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
