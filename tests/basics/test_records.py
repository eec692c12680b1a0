"""Eastgate's `dataclass` equals the standard library's in all visible behaviour."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import pytest

import eastgate
from eastgate.basics.records import _dataclass as ours
from eastgate.basics.records import dataclass, unfrozen

Decorator = Callable[..., Any]
T = TypeVar("T")


def _plain(dataclass: Decorator) -> type[Any]:
    @dataclass(frozen=True, slots=True)
    class Plain:
        """Has fields of every sort."""

        first: int
        second: str = "b"
        third: list[int] = field(default_factory=list)
        hidden: int = field(default=0, repr=False)
        beside: int = field(default=0, compare=False)
        unhashed: int = field(default=0, hash=False)
        fixed: int = field(default=7, init=False)
        made: dict[str, int] = field(default_factory=dict, init=False, hash=False)

    return Plain


def _referred(dataclass: Decorator) -> type[Any]:
    @dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
    class Referred:
        """Can have weak references."""

        first: int

    return Referred


def _bare(dataclass: Decorator) -> type[Any]:
    @dataclass(frozen=True, slots=True)
    class Bare:
        """Has no fields."""

    return Bare


def _single(dataclass: Decorator) -> type[Any]:
    @dataclass(frozen=True, slots=True)
    class Single:
        """Has one field, and checks it."""

        first: int

        def __post_init__(self) -> None:
            if self.first == 99:
                raise ValueError("too large")

    return Single


def _keywords(dataclass: Decorator) -> type[Any]:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Keywords:
        """Has fields by name, one of them without a default after one with."""

        second: int = 2
        first: int

    return Keywords


def _mixed(dataclass: Decorator) -> type[Any]:
    @dataclass(frozen=True, slots=True)
    class Mixed:
        """Has one field by name."""

        first: int
        name: str = field(kw_only=True, default="n")
        last: int = 3

    return Mixed


def _identical(dataclass: Decorator) -> type[Any]:
    @dataclass(frozen=True, slots=True, eq=False)
    class Identical:
        """Is equal to itself only."""

        first: int

    return Identical


def _own(dataclass: Decorator) -> type[Any]:
    @dataclass(frozen=True, slots=True)
    class Own:
        """Brings methods of its own."""

        first: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self)) and self.first % 10 == other.first % 10

        def __repr__(self) -> str:
            return "own"

    return Own


def _hashing(dataclass: Decorator) -> type[Any]:
    @dataclass(frozen=True, slots=True)
    class Hashing:
        """Brings its own hash."""

        first: int

        def __hash__(self) -> int:
            return 4

    return Hashing


def _generic(dataclass: Decorator) -> type[Any]:
    @dataclass(frozen=True, slots=True)
    class Box(Generic[T]):
        """Holds one thing."""

        first: T

    return Box


def _constant(dataclass: Decorator) -> type[Any]:
    @dataclass(frozen=True, slots=True, eq=False)
    class Constant:
        """Has a value that all instances share."""

        kind: ClassVar[str] = "k"
        first: int

    return Constant


def _ordered(dataclass: Decorator) -> type[Any]:
    @dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        """Has an order."""

        kind: ClassVar[str] = "k"
        first: int

    return Ordered


def _inheriting(dataclass: Decorator) -> type[Any]:
    @dataclass(frozen=True, slots=True)
    class Base:
        """Has a field."""

        first: int

    @dataclass(frozen=True, slots=True)
    class Inheriting(Base):
        """Has another one."""

        second: int = 2

    return Inheriting


def _mutable(dataclass: Decorator) -> type[Any]:
    @dataclass(slots=True)
    class Mutable:
        """Can be changed, and so has no hash."""

        first: int
        third: list[int] = field(default_factory=list)

    return Mutable


def _inheriting_keywords(dataclass: Decorator) -> type[Any]:
    @dataclass(frozen=True, slots=True, eq=False, kw_only=True)
    class Base:
        """Has fields by name, one of them with a default."""

        name: str = "n"
        first: int

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Inheriting(Base):
        """Has another one, and another default."""

        name: str = "m"
        second: int = 2

    return Inheriting


MAKERS = (
    _plain,
    _bare,
    _single,
    _keywords,
    _mixed,
    _identical,
    _own,
    _hashing,
    _generic,
    _constant,
    _ordered,
    _inheriting,
    _mutable,
    _referred,
    _inheriting_keywords,
)
CALLS: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((), {}),
    ((1,), {}),
    ((2,), {}),
    ((11,), {}),
    ((99,), {}),
    ((1, "b"), {}),
    ((1, "b", [3]), {}),
    ((1, "b", [], 5), {}),
    ((1, "b", [], 0, 5), {}),
    ((1, "b", [], 0, 0, 5), {}),
    ((1, "b", [], 0, 0, 0, 5), {}),
    ((), {"first": 1}),
    ((), {"first": 1, "second": 4}),
    ((), {"first": 1, "name": "x"}),
    ((), {"first": 1, "unknown": 4}),
)


def _outcome(act: Callable[[], object]) -> object:
    """Return the result of a function, or its exception."""
    try:
        return act()
    except Exception as error:
        return type(error), str(error).replace(".<locals>", "")


def _order(first: Any, second: Any) -> object:
    return _outcome(lambda: (first < second, first <= second, first > second, first >= second))


@pytest.mark.parametrize("maker", MAKERS)
def test_instances_are_made_shown_and_compared_alike(maker: Callable[[Decorator], type[Any]]) -> None:
    made, standard = maker(ours), maker(dataclasses.dataclass)
    twins = []
    for words, named in CALLS:
        mine = _outcome(lambda words=words, named=named: made(*words, **named))  # type: ignore[misc]
        theirs = _outcome(lambda words=words, named=named: standard(*words, **named))  # type: ignore[misc]
        if isinstance(theirs, tuple):
            assert mine == theirs
        else:
            twins.append((mine, theirs))
    assert twins
    for mine, theirs in twins:
        assert repr(mine) == repr(theirs)
        for other_mine, other_theirs in twins:
            assert (mine == other_mine) == (theirs == other_theirs)
            assert _order(mine, other_mine) == _order(theirs, other_theirs)
        assert mine != theirs
        if maker not in (_identical, _constant, _referred):
            assert _outcome(lambda mine=mine: hash(mine)) == _outcome(lambda theirs=theirs: hash(theirs))  # type: ignore[misc]


@pytest.mark.parametrize("maker", MAKERS)
def test_classes_look_alike(maker: Callable[[Decorator], type[Any]]) -> None:
    made, standard = maker(ours), maker(dataclasses.dataclass)
    assert str(inspect.signature(made)) == str(inspect.signature(standard))
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__match_args__", "__slots__", "__annotations__"):
        assert getattr(made, name) == getattr(standard, name)
    assert repr(made.__dataclass_params__) == repr(standard.__dataclass_params__)
    assert list(map(repr, dataclasses.fields(made))) == list(map(repr, dataclasses.fields(standard)))
    assert not hasattr(
        made(first=1) if "first" in made.__match_args__ or maker in (_keywords, _inheriting_keywords) else made(),
        "__dict__",
    )


@pytest.mark.parametrize("act", [lambda one: setattr(one, "first", 2), lambda one: delattr(one, "first")])
def test_nothing_can_be_changed(act: Callable[[object], None]) -> None:
    mine, theirs = _plain(ours)(1), _plain(dataclasses.dataclass)(1)
    assert _outcome(lambda: act(mine)) == _outcome(lambda: act(theirs))
    assert mine.first == 1


@pytest.mark.parametrize("slots", [{}, {"__slots__": ()}])
def test_an_object_that_was_not_frozen_is_as_any_other_with_its_own_class(slots: dict[str, tuple[str, ...]]) -> None:
    plain = _plain(ours)
    for cls in (plain, type("Plain", (plain,), slots)):
        made = unfrozen[cls](1, "c", [])
        made.second = "d"
        made.__class__ = cls
        assert (type(made), made) == (cls, cls(1, "d", []))
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.second = "e"


def test_what_can_be_changed_is_changed() -> None:
    mutable = _mutable(ours)(1)
    mutable.first = 2
    assert mutable == type(mutable)(2)
    with pytest.raises(TypeError):
        hash(mutable)


@dataclasses.dataclass(slots=True)
class Thawed:
    """The standard library handles it."""

    first: int


def test_a_class_that_the_standard_library_refuses_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot inherit frozen dataclass from a non-frozen one"):

        @ours(frozen=True, slots=True)
        class Frozen(Thawed):
            """Cannot keep its promise."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Pickled by its name."""

    first: int
    second: str = "b"


def test_copies_are_equal() -> None:
    kept = Kept(1, "c")
    assert pickle.loads(pickle.dumps(kept)) == copy.deepcopy(kept) == copy.copy(kept) == kept  # noqa: S301
    assert dataclasses.replace(kept, second="d") == Kept(1, "d")
    assert dataclasses.asdict(kept) == {"first": 1, "second": "c"}


def test_values_are_those_of_each_instance() -> None:
    plain = _plain(ours)
    assert plain(1).third is not plain(1).third
    assert plain(1).made is not plain(1).made


def test_every_module_makes_its_dataclasses_so() -> None:
    taken = re.compile(r"^from dataclasses import .*\bdataclass\b|dataclasses\.dataclass\b", re.MULTILINE)
    sources = Path(eastgate.__file__).parent.rglob("*.py")
    assert [file.name for file in sources if taken.search(file.read_text("utf-8"))] == ["records.py"]
