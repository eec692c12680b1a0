"""`dataclass` of the standard library, for a fraction of what it costs to make a class.

A short command spends most of its time on importing, and would spend a third of that on `@dataclass(frozen=True,
slots=True)`: the standard library compiles six functions for each such class. Here one is compiled, `__init__`, and
the others are shared. Whatever is special is left to the standard library: other options, inherited fields. For
type checkers, `fields`, `replace` and `match` there is no difference.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]

_OPTIONS = {"eq", "frozen", "kw_only", "slots"}
_SPECIAL = {"__init__", "__setattr__", "__delattr__", "__getstate__", "__setstate__", "__slots__"}


def _dataclass(cls: type | None = None, **options: bool) -> Any:
    if cls is None:
        return lambda decorated: _dataclass(decorated, **options)
    if options.get("frozen") and options.get("slots") and options.keys() <= _OPTIONS and _is_simple(cls):
        return _frozen(cls, **options)
    return dataclasses.dataclass(**options)(cls)


def _is_simple(cls: type) -> bool:
    members = vars(cls)
    if cls.__doc__ is None or not _SPECIAL.isdisjoint(members):
        return False
    if any(hasattr(base, "__dataclass_fields__") for base in cls.__bases__):
        return False
    return not any("InitVar" in annotation for annotation in members.get("__annotations__", {}).values())


def _frozen(cls: type, *, eq: bool = True, kw_only: bool = False, **_: bool) -> type:
    """Do what `dataclass(frozen=True, slots=True)` does."""
    dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(
        cls
    )  # collects the fields, and compiles nothing
    fields = dataclasses.fields(cls)
    names = tuple(field.name for field in fields)
    members = {name: value for name, value in vars(cls).items() if name not in names}
    for name in ("__dict__", "__weakref__"):
        members.pop(name, None)
    if eq:
        if members.get("__hash__") is None:
            hashed = (field for field in fields if (field.compare if field.hash is None else field.hash))
            members["__hash__"] = _hash(hashed)
        members.setdefault("__eq__", _eq(field for field in fields if field.compare))
    members.setdefault("__repr__", _repr)
    made: Any = type(cls)(
        cls.__name__,
        cls.__bases__,
        {
            **members,
            "__qualname__": cls.__qualname__,
            "__slots__": names,
            "__setattr__": _setattr,
            "__delattr__": _delattr,
            "__getstate__": _getstate,
            "__setstate__": _setstate,
        },
    )
    made.__init__ = _init(made, fields)
    params = made.__dataclass_params__
    params.init = params.repr = params.frozen = True
    params.eq = eq
    return made


def _init(made: type, fields: tuple[Field[Any], ...]) -> Callable[..., None]:
    """Compile `__init__`, which sets the slots themselves: `__setattr__` refuses."""
    names: dict[str, object] = {"MISSING": MISSING}
    parameters: tuple[list[str], list[str]] = (["self"], ["*"])
    lines: list[str] = []
    for field in fields:
        name, value = field.name, field.name
        if field.default is not MISSING:
            names[f"default_{name}"] = field.default
        if field.default_factory is not MISSING:
            names[f"make_{name}"] = field.default_factory
        if not field.init:
            value = f"make_{name}()" if f"make_{name}" in names else f"default_{name}"
        elif f"make_{name}" in names:
            parameters[field.kw_only is True].append(f"{name}=MISSING")
            value = f"make_{name}() if {name} is MISSING else {name}"
        elif f"default_{name}" in names:
            parameters[field.kw_only is True].append(f"{name}=default_{name}")
        else:
            parameters[field.kw_only is True].append(name)
        if value == name or value.startswith("make_") or value in names:
            names[f"set_{name}"] = vars(made)[name].__set__
            lines.append(f"  set_{name}(self, {value})")
    if hasattr(made, "__post_init__"):
        lines.append("  self.__post_init__()")
    by_place, by_name = parameters
    signature = ", ".join([*by_place, *(by_name if len(by_name) > 1 else ())])
    source = f"def make({', '.join(names)}):\n def __init__({signature}):\n"
    source += "\n".join(lines or ["  pass"]) + "\n return __init__"
    namespace: dict[str, Any] = {}
    exec(source, namespace)  # noqa: S102 - names of fields, as the standard library does it
    init: Callable[..., None] = namespace["make"](**names)
    init.__qualname__ = f"{made.__qualname__}.__init__"
    init.__annotations__ = {**{field.name: field.type for field in fields if field.init}, "return": None}
    return init


def _values(fields: Iterator[Field[Any]]) -> Callable[[Any], tuple[object, ...]]:
    """Return what gives the values of some fields as a tuple."""
    names = [field.name for field in fields]
    if not names:
        return lambda _: ()
    values = attrgetter(*names)
    return values if len(names) > 1 else lambda this: (values(this),)


def _eq(fields: Iterator[Field[Any]]) -> Callable[[object, object], bool]:
    values = _values(fields)

    def __eq__(self: object, other: object) -> bool:  # noqa: N807
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return __eq__


def _hash(fields: Iterator[Field[Any]]) -> Callable[[object], int]:
    values = _values(fields)
    return lambda self: hash(values(self))


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _setattr(self: object, name: str, value: object) -> NoReturn:  # noqa: ARG001 - as the language calls it
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: object, name: str) -> NoReturn:  # noqa: ARG001
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _setstate(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass
