"""Selections give the recorded answers of the real gjson: see the head of vectors.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from eastgate.dialects.kuadrant.authorino.gjson import select

_RECORDED = json.loads((Path(__file__).parent / "vectors.json").read_text(encoding="utf-8"))


class Vector(NamedTuple):
    document: str
    path: str
    exists: bool
    text: str
    raw: str
    texts: list[str]


VECTORS = [Vector(*row) for row in _RECORDED["vectors"]]


def _name(vector: Vector) -> str:
    return f"{vector.document}: {vector.path}"


@pytest.mark.parametrize("vector", VECTORS, ids=_name)
def test_a_path_selects_what_the_real_gjson_selects(vector: Vector) -> None:
    selected = select(_RECORDED["documents"][vector.document], vector.path)
    assert (selected.exists, selected.text, list(selected.texts)) == (vector.exists, vector.text, vector.texts)


def _meaning(raw: str) -> object:
    """Return the data of a JSON text. The first value of a duplicate key counts. Raises ValueError for other texts."""
    return json.loads(raw, object_pairs_hook=lambda pairs: dict(reversed(pairs)), parse_constant=_not_json)


def _not_json(text: str) -> object:
    raise ValueError(text)


def _is_json(raw: str) -> bool:
    try:
        _meaning(raw)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("vector", [vector for vector in VECTORS if _is_json(vector.raw)], ids=_name)
def test_the_value_is_what_its_json_means(vector: Vector) -> None:
    selected = select(_RECORDED["documents"][vector.document], vector.path)
    meant = _meaning(vector.raw)
    assert selected.value == meant
    assert isinstance(selected.value, bool) == isinstance(meant, bool)


def test_the_vectors_are_many_and_each_is_there_once() -> None:
    assert len(VECTORS) > 400
    assert len({(vector.document, vector.path) for vector in VECTORS}) == len(VECTORS)
