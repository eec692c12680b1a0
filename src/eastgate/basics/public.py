"""Support for public names: the checks of argument types, and the name of the public module."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar, Union, Unpack, get_args, get_origin, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])

_SECRET = ("certificate", "token")  # values of these parameters are not shown
_WORDS = {Mapping: "mapping", Iterable: "iterable", os.PathLike: "path"}


def publish(module: Mapping[str, Any]) -> None:
    """Set the public module as the module of its exported names, for tracebacks and pickles."""
    for name in module["__all__"]:
        if hasattr(module[name], "__qualname__"):  # an alias has none
            module[name].__module__ = module["__name__"]


def checked(function: F) -> F:
    """Decorate a function so that it raises TypeError for arguments that do not match its annotations."""
    signature = inspect.signature(function)
    hints: dict[str, Any] = {}  # of all parameters, by name; computed at the first call
    right: set[tuple[object, ...]] = set()  # types of arguments that were found to be right, and have no elements

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        types_given = (*map(type, args), *kwargs, *map(type, kwargs.values()))
        if types_given in right:
            return function(*args, **kwargs)
        hints.update({} if hints else _hints(function))
        for name, value in _named(signature, args, kwargs):
            if name in hints:
                require(name, value, hints[name])
            elif name not in signature.parameters:
                raise TypeError(f"{function.__name__}() has no parameter {name}")
        types_only = (given for given in types_given if isinstance(given, type))
        if not any(hasattr(given, "__iter__") and not issubclass(given, str) for given in types_only):
            right.add(types_given)
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]  # it has the signature of the function


def require(name: str, value: object, wanted: Any) -> None:
    """Raise TypeError if a value does not have the demanded type."""
    if not _is(value, wanted):
        shown = repr(value)
        text = "" if name in _SECRET else f": {shown}" if len(shown) <= 60 else f": {shown[:57]}..."
        raise TypeError(f"{name} must be {_describe(wanted)}, not {type(value).__name__}{text}")


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of parameters by name, without those that are imported for type checkers only."""

    def one() -> None: ...

    hints: dict[str, Any] = {}
    for name, hint in function.__annotations__.items():
        one.__annotations__ = {name: hint}
        with contextlib.suppress(NameError):
            hints |= get_type_hints(one, function.__globals__, include_extras=True) if name != "return" else {}
    for unpacked in [*hints.values()]:
        if get_origin(unpacked) is Unpack:
            hints |= get_type_hints(get_args(unpacked)[0])
    return hints


def _named(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterable[tuple[str, object]]:
    """Yield the arguments with the names of their parameters. Python itself reports missing ones."""
    parameters = iter(signature.parameters.values())
    parameter = None
    for value in args:
        if parameter is None or parameter.kind is not parameter.VAR_POSITIONAL:
            parameter = next(parameters, parameter)
        if parameter is not None:
            yield parameter.name, value
    yield from kwargs.items()


def _is(value: object, wanted: Any) -> bool:
    if wanted is Any or wanted is object or isinstance(wanted, TypeVar):
        return True
    if wanted is None:
        return value is None
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        return any(_is(value, each) for each in inner)
    if origin is None:
        if getattr(wanted, "_is_protocol", False) and not getattr(wanted, "_is_runtime_protocol", False):
            return True
        return isinstance(value, wanted) and not (wanted is int and isinstance(value, bool))
    if not isinstance(value, origin) or (isinstance(value, str) and origin not in (str, os.PathLike)):
        return False
    if issubclass(origin, Mapping):
        return all(_is(key, inner[0]) for key in value)
    if isinstance(value, Collection) and origin is not os.PathLike and inner:
        return all(_is(each, inner[0]) for each in value)
    return True


def _describe(wanted: Any) -> str:
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        named = dict.fromkeys(_describe(each) for each in inner if each is not type(None))
        return " or ".join(named)
    name = _WORDS[origin] if origin in _WORDS else str(getattr(origin or wanted, "__name__", wanted))
    described = f"{'an' if name[0] in 'aeiouAEIO' else 'a'} {name}"
    if origin is not None and issubclass(origin, Iterable) and not issubclass(origin, Mapping) and inner:
        return f"{described} of {_describe(inner[0]).partition(' ')[2]}"
    return described
