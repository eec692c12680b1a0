"""`dataclass` of the standard library, at a fraction of its cost for each class.

A short command spends most of its time on imports, and would spend a third of that on `@dataclass(frozen=True,
slots=True)`. The standard library collects the fields of each class and compiles six functions for it, and the command
does not use most of the classes. Here, a class is created with its slots; fields, `__init__`, `__eq__` and `__hash__`
are created on first use (`_Late`). The standard library handles every special case. `fields`, `replace`, `signature`,
`match` and type checkers see no difference.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["brief", "dataclass", "set_class", "strings_in", "unfrozen"]

_OPTIONS = {"eq", "frozen", "kw_only", "order", "slots", "weakref_slot"}
_SPECIAL = {"__init__", "__setattr__", "__delattr__", "__getstate__", "__setstate__", "__slots__", "__match_args__"}
_ORDER = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


_MAX_REPR_CHARS = 120


def brief(value: object, text: str) -> str:
    """Return a `repr` in one short line: the type of a value, and its distinctive part."""
    line = f"<{type(value).__name__} {' '.join(text.split())}"
    return f"{line}>" if len(line) < _MAX_REPR_CHARS else f"{line[: _MAX_REPR_CHARS - 2]}…>"


def _dataclass(cls: type | None = None, **options: bool) -> Any:
    if cls is None:
        return lambda decorated: _dataclass(decorated, **options)
    if options.get("slots") and options.keys() <= _OPTIONS and _is_simple(cls, frozen=options.get("frozen", False)):
        return _slotted(cls, **options)
    return dataclasses.dataclass(**options)(cls)


def _is_simple(cls: type, *, frozen: bool) -> bool:
    """Return whether a class has no special case that needs the standard library."""
    members = vars(cls)
    if not (_SPECIAL | _ORDER.keys()).isdisjoint(members):
        return False
    if any(base.__dataclass_params__.frozen is not frozen for base in _dataclasses_among(cls.__mro__[1:])):
        return False
    annotations = members.get("__annotations__", {}).values()
    return all(isinstance(type_, str) and "InitVar" not in type_ and "KW_ONLY" not in type_ for type_ in annotations)


def _dataclasses_among(classes: Iterable[type]) -> list[Any]:
    return [cls for cls in classes if "__dataclass_fields__" in vars(cls)]


class _Late:
    """An attribute of a class that is created on first use, and then replaces this object."""

    __slots__ = ("make", "name", "owner")

    owner: type
    name: str

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, instance: object, owner: type) -> Any:
        value = self.make(self.owner)
        setattr(self.owner, self.name, value)
        return value if instance is None or not callable(value) else value.__get__(instance, owner)


def _slotted(
    cls: type,
    *,
    frozen: bool = False,
    eq: bool = True,
    kw_only: bool = False,
    order: bool = False,
    weakref_slot: bool = False,
    **_: bool,
) -> Any:
    """Return the class with slots, as `dataclass(slots=True)` does."""
    members = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    annotations = {
        name: annotation
        for name, annotation in members.get("__annotations__", {}).items()
        if not annotation.startswith(("ClassVar", "typing.ClassVar"))
    }
    defaults = {name: members.pop(name) for name in annotations if name in members}
    inherited = {name for base in cls.__mro__[1:] for name in vars(base).get("__slots__", ())}

    def collect(made: type) -> Any:
        """Let the standard library collect the fields in a temporary class, and take only these."""
        body = {"__doc__": made.__name__, "__module__": made.__module__, "__annotations__": annotations, **defaults}
        return dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(type(made.__name__, (), body))

    def collect_fields(made: type) -> dict[str, Field[Any]]:
        fields: dict[str, Field[Any]] = {}
        for base in reversed(_dataclasses_among(made.__mro__[1:])):
            fields |= base.__dataclass_fields__
        fields |= collect(made).__dataclass_fields__
        return fields

    def describe(made: type) -> object:
        parameters = collect(made).__dataclass_params__
        parameters.init = parameters.repr = True
        parameters.eq, parameters.order, parameters.frozen = eq, order, frozen
        return parameters

    members |= {
        "__qualname__": cls.__qualname__,
        "__slots__": tuple(name for name in (*annotations, *["__weakref__"] * weakref_slot) if name not in inherited),
        "__dataclass_fields__": _Late(collect_fields),
        "__dataclass_params__": _Late(describe),
        "__match_args__": _Late(_match_args),
        "__init__": _Late(_frozen_init if frozen else _init),
    }
    members.setdefault("__repr__", _repr)
    if frozen:
        members |= _FROZEN
    if eq:
        members.setdefault("__eq__", _Late(partial(_comparison, name="__eq__", operator="==")))
        if not frozen:
            members.setdefault("__hash__", None)
        elif members.get("__hash__") is None:
            members["__hash__"] = _Late(_hash)
    if order:
        members |= {name: _Late(partial(_comparison, name=name, operator=sign)) for name, sign in _ORDER.items()}
    return type(cls)(cls.__name__, cls.__bases__, members)


def _match_args(made: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(made) if field.init and not field.kw_only)


class _Made:
    """The default of a parameter with a factory, in the form of the standard library."""

    def __repr__(self) -> str:
        return "<factory>"


_MADE = _Made()


def _frozen_init(made: Any) -> Callable[..., None]:
    """Compile `__init__` for a frozen class: it sets the slots directly."""
    setters = {f"set_{field.name}": getattr(made, field.name).__set__ for field in dataclasses.fields(made)}
    return _init(made, "set_{0}(self, {1})", setters)


def _init(
    made: Any, assignment: str = "self.{0} = {1}", setters: Mapping[str, object] = MappingProxyType({})
) -> Callable[..., None]:
    """Compile `__init__`."""
    fields = dataclasses.fields(made)
    names: dict[str, object] = {"MADE": _MADE, **setters}
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
            parameters[field.kw_only is True].append(f"{name}=MADE")
            value = f"make_{name}() if {name} is MADE else {name}"
        elif f"default_{name}" in names:
            parameters[field.kw_only is True].append(f"{name}=default_{name}")
        else:
            parameters[field.kw_only is True].append(name)
        if value == name or value.startswith("make_") or value in names:
            lines.append(assignment.format(name, value))
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    by_place, by_name = parameters
    signature = ", ".join([*by_place, *(by_name if len(by_name) > 1 else ())])
    init = _compile(made, f"__init__({signature})", lines or ["pass"], names)
    init.__annotations__ = {**{field.name: field.type for field in fields if field.init}, "return": None}
    return init


def strings_in(value: object) -> Iterator[str]:
    """Yield every text in a record and its parts, for fields that count for equality."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from strings_in(part)
    elif isinstance(value, tuple | list | frozenset):
        for part in value:
            yield from strings_in(part)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.compare:
                yield from strings_in(getattr(value, field.name))


class _Unfrozen(dict[type, Any]):
    """For each frozen class, a class with the same slots that allows setting them.

    Setting a slot of a frozen object needs a call of its descriptor. For frequent objects with many fields, it is
    faster to create an object of this class, and then set its real class. `__post_init__` is not called.
    """

    def __missing__(self, frozen: type) -> Any:
        members = {name: value for name, value in vars(frozen).items() if name in ("__slots__", "__dataclass_fields__")}
        members |= {"__setattr__": object.__setattr__, "__init__": _Late(_init)}
        made = self[frozen] = type(frozen.__name__, frozen.__bases__, members)
        return made


unfrozen = _Unfrozen()
set_class: Callable[[object, type], None] = vars(object)["__class__"].__set__


def _comparison(made: Any, name: str, operator: str) -> Callable[..., Any]:
    """Compile a comparison of the fields, one after the other."""
    compared = [field for field in dataclasses.fields(made) if field.compare]
    lines = [
        "if other.__class__ is self.__class__:",
        f" return {_values('self', compared)} {operator} {_values('other', compared)}",
        "return NotImplemented",
    ]
    return _compile(made, f"{name}(self, other)", lines, {})


def _hash(made: Any) -> Callable[..., Any]:
    """Compile `__hash__`."""
    hashed = [field for field in dataclasses.fields(made) if (field.compare if field.hash is None else field.hash)]
    return _compile(made, "__hash__(self)", [f"return hash({_values('self', hashed)})"], {})


def _values(instance: str, fields: Iterable[Field[Any]]) -> str:
    return f"({''.join(f'{instance}.{field.name}, ' for field in fields)})"


def _compile(made: Any, signature: str, lines: Iterable[str], names: Mapping[str, object]) -> Callable[..., Any]:
    """Compile a method from its lines, with the names that they use."""
    namespace: dict[str, Any] = {"__name__": made.__module__, **names}
    exec("\n ".join([f"def {signature}:", *lines]), namespace)  # noqa: S102 - as the standard library does it
    method: Callable[..., Any] = namespace[signature.partition("(")[0]]
    method.__qualname__ = f"{made.__qualname__}.{method.__name__}"
    return method


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


_FROZEN = {
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass
