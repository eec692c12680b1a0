"""Operations of Istio's rules as ports, paths and methods; what else they say, no other API has words for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.convert import codes
from eastgate.convert.istio_callers import Part, UnsayableError
from eastgate.convert.istio_rules import lose_paths
from eastgate.convert.model import Job
from eastgate.dialects.istio.values import is_template
from eastgate.dialects.istio.written import Values, WrittenValue
from eastgate.ir.paths import encoded_path, path_problem

OPERATION_FIELDS: Final = ("ports", "destination.port", "methods", "paths")
"""The fields and the keys of conditions that are read here."""

_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
_TOKEN = regex(r"[!#$%&'+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class Operation:
    """Ports, paths and methods, of each ANY; None is any."""

    ports: tuple[int, ...] | None = None
    paths: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    paths_span: Span | None = None


def read_operation(parts: Sequence[Part], job: Job, *, denies: bool) -> Operation:
    """Read an operation of which ALL parts hold. Raises UnsayableError; in an ALLOW values may be left out instead."""
    ports: tuple[int, ...] | None = None
    paths, methods, paths_span = None, None, None
    for name, values in parts:
        match name:
            case "ports" | "destination.port":
                numbers = _ports(values, job, denies=denies)
                ports = numbers if ports is None else tuple(port for port in ports if port in numbers)
            case "methods":
                methods = _methods(values, job, denies=denies)
            case _:
                paths, paths_span = _paths(values, job, denies=denies), values.span
    return Operation(ports, paths, methods, paths_span)


def _said(values: Values, is_said: Callable[[WrittenValue], bool], what: str, job: Job, *, denies: bool) -> list[str]:
    """Return the values that the target can say. Those that it cannot are left out of an ALLOW."""
    if values.not_values:
        raise UnsayableError(codes.FIELD, f"the target has no words for {what} that must not match", values.span)
    said = [value for value in values.values if is_said(value)]
    if not said or (denies and len(said) < len(values.values)):
        raise UnsayableError(codes.FIELD, f"the target has no words for these {what}", values.span)
    for value in values.values:
        if value not in said:
            job.lose(codes.FIELD, f"the target has no words for `{value}`, which is left out", value.span)
    return list(dict.fromkeys(value.text for value in said))


def _ports(values: Values, job: Job, *, denies: bool) -> tuple[int, ...]:
    said = _said(values, lambda value: int(value.text) > 0, "ports", job, denies=denies)
    return tuple(dict.fromkeys(map(int, said)))


def _paths(values: Values, job: Job, *, denies: bool) -> tuple[str, ...]:
    said = _said(values, _is_path, "paths", job, denies=denies)
    lose_paths(job, values.span)
    return tuple(map(encoded_path, said))


def _is_path(value: WrittenValue) -> bool:
    text = value.text
    bare = text[1:] if text.startswith("*") else text.removesuffix("*")
    if "*" in bare or is_template(text) or not text.startswith(("/", "*")):
        return False
    return path_problem(text, wildcard=True) is None


def _methods(values: Values, job: Job, *, denies: bool) -> tuple[str, ...]:
    """Return methods; patterns, and what must not match, become those of the usual methods that are meant."""
    is_pattern = bool(values.not_values) or any("*" in value.text for value in values.values)
    if not is_pattern:
        return tuple(_said(values, _is_method, "methods", job, denies=denies))
    if denies:
        raise UnsayableError(codes.FIELD, "the target has no words for methods by patterns", values.span)
    named = [value.text for value in values.values if "*" not in value.text and _is_method(value)]
    asked = [text for text in dict.fromkeys((*named, *_METHODS)) if _is_meant(text, values)]
    if not asked:
        raise UnsayableError(codes.FIELD, "the target has no words for these methods", values.span)
    job.lose(codes.FIELD, f"of these methods only the usual ones stay: {', '.join(asked)}", values.span)
    return tuple(asked)


def _is_method(value: WrittenValue) -> bool:
    text = value.text
    return _TOKEN.fullmatch(text) is not None and (text.upper() not in _METHODS or text in _METHODS)


def _is_meant(method: str, values: Values) -> bool:
    wanted = not values.values or any(_matches(value.text, method) for value in values.values)
    return wanted and not any(_matches(value.text, method) for value in values.not_values)


def _matches(pattern: str, method: str) -> bool:
    if pattern.startswith("*"):
        return method.endswith(pattern[1:])
    return method.startswith(pattern[:-1]) if pattern.endswith("*") else method == pattern
