"""Runs a compiled expression, and words its errors for the policy's author."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from eastgate.dialects.cel.variables import VariableKind


class CelEvaluationError(Exception):
    """The expression has no answer for this request. It must not allow, and it must not skip a deny."""


class CelProgram(Protocol):
    """A compiled expression."""

    def run(self, data: Mapping[str, object]) -> bool:
        """Return the answer; raises CelEvaluationError where there is none."""
        ...


def fitting(value: str | int, kind: VariableKind, path: str) -> str | int | datetime:
    """Return the value as the evaluator takes it. One of the wrong type errs: it must not be compared as something
    else.
    """
    match kind, value:
        case VariableKind.TEXT, str():
            return _whole(value, path)
        case VariableKind.NUMBER, int() if not isinstance(value, bool):
            return value
        case VariableKind.TIME, str():
            try:
                time = datetime.fromisoformat(value)
            except ValueError as error:
                raise CelEvaluationError(f"`{path}` is {value!r}, not a time such as 2026-01-31T12:00:00Z") from error
            if time.tzinfo is not None:
                return time
            raise CelEvaluationError(f"`{path}` is {value!r}, a time without its offset from UTC")
    raise CelEvaluationError(f"`{path}` is {value!r}, not {'an' if kind is VariableKind.NUMBER else 'a'} {kind.value}")


def _whole(text: str, path: str) -> str:
    """Return the text, if the core sees all of it: it takes a NUL for the end, and `admin\\0x` for `admin`."""
    if "\0" in text:
        raise CelEvaluationError(f"`{path}` has a NUL in it, which cannot be evaluated")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise CelEvaluationError(f"`{path}` is not Unicode") from error
    return text


def in_plain_words(message: str) -> str:
    """Return an evaluation error of the CEL core, without its status code."""
    absent = re.search(r'No value with name "(.*)" found in Activation', message)
    if absent:
        return f"`{absent[1]}` is absent"
    missing = re.search(r"Key not found in map : (.*)", message)
    if missing:
        return f"there is no entry {missing[1]}"
    return re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", message)
