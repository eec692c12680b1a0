"""Each attribute is one object, for every way to make it."""

from __future__ import annotations

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from threading import Barrier

import pytest

from eastgate.ir import attributes
from eastgate.ir.attributes import PATH, SENT_PATH, Attribute, AttributeKind, header, query


def test_equal_attributes_are_one_object() -> None:
    assert header("X-Tenant") is header("x-tenant")
    assert Attribute(AttributeKind.PATH) is PATH
    assert header("a") != query("a")
    assert PATH != SENT_PATH
    assert Attribute(AttributeKind.HEADER, "a") is header("a")


@pytest.mark.parametrize("attribute", [PATH, SENT_PATH, header("x-tenant")])
def test_copies_are_the_same_object(attribute: Attribute) -> None:
    assert pickle.loads(pickle.dumps(attribute)) is attribute  # noqa: S301 - this test made it
    assert copy.deepcopy({attribute: 1}) == {attribute: 1}


def test_threads_get_the_same_object() -> None:
    with ThreadPoolExecutor(8) as pool:
        for number in range(50):
            together = Barrier(8)

            def make(_: int, name: str = f"x-{number}", together: Barrier = together) -> Attribute:
                together.wait()
                return header(name)

            assert len({id(attribute) for attribute in list(pool.map(make, range(8)))}) == 1


def test_an_unused_attribute_is_freed() -> None:
    before = len(attributes._ATTRIBUTES)
    kept = [header(f"x-random-{number}") for number in range(100)]
    assert len(attributes._ATTRIBUTES) == before + 100
    del kept
    gc.collect()
    assert len(attributes._ATTRIBUTES) <= before


def test_attributes_are_sorted_by_kind_and_key_and_never_change() -> None:
    assert sorted([query("a"), header("b"), header("a"), PATH]) == [header("a"), header("b"), PATH, query("a")]
    with pytest.raises(FrozenInstanceError):
        PATH.kind = AttributeKind.HOST
    with pytest.raises(FrozenInstanceError):
        del PATH.kind
    assert repr(header("a")) == "Attribute('header', 'a')"
