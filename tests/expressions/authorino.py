"""The languages of Authorino, in a small Go program that uses its own packages."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.programs.building import find


class Upstream:
    """Gives Authorino's answers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def select(self, path: str, document: object) -> dict[str, Any]:
        """Return the result of a selector: exists, text, raw, texts."""
        return self._ask({"select": path}, document)

    def resolve(self, pattern: str, document: object) -> dict[str, Any]:
        """Return the result of a selector or template: value, text."""
        return self._ask({"value": pattern}, document)

    def cel(self, text: str, document: object) -> dict[str, Any]:
        """Return the result of an expression: value; or error, or refused, with the reason."""
        return self._ask({"cel": text}, document)

    def rego(self, module: str, query: str, document: object) -> dict[str, Any]:
        """Return the result of a query: bindings; or undefined, error, or refused, with the reason."""
        return self._ask({"rego": module, "query": query}, document)

    def _ask(self, question: Mapping[str, str], document: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f'{json.dumps(question)[:-1]}, "document": {as_go_writes(document)}}}\n')
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def as_go_writes(document: object) -> str:
    """Return the document as JSON in the form of Go's encoding/json, because selectors can observe the form."""
    match document:
        case dict():
            return "{" + ",".join(f"{as_go_writes(key)}:{as_go_writes(value)}" for key, value in document.items()) + "}"
        case list():
            return "[" + ",".join(map(as_go_writes, document)) + "]"
        case str():
            text = json.dumps(document, ensure_ascii=False)
            for character in "<>&\u2028\u2029":
                text = text.replace(character, f"\\u{ord(character):04x}")
            return text
        case float() if document.is_integer() and abs(document) < 1e21:
            return f"{document:.0f}"
        case float():
            return repr(document).replace("e-0", "e-")
    return json.dumps(document)


@contextmanager
def running() -> Iterator[Upstream]:
    """Build the program if necessary, and run it."""
    with subprocess.Popen([find("expressions")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Upstream(process)
        finally:
            process.kill()
