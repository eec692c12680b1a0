"""The list of equivalent mutants: each exists, and has a reason."""

from __future__ import annotations

from tests.mutants.equivalent import read_equivalent
from tests.mutants.mutating import mutants_of
from tests.mutants.places import SUBJECTS


def test_what_is_listed_as_equivalent_is_a_mutant_of_the_code_as_it_is() -> None:
    """If a function has changed, check its mutants again: `make mutants MUTANTS_ARGS="engine --only FUNCTION"`."""
    keys = {mutant.key for subject in SUBJECTS.values() for file in subject.files() for mutant in mutants_of(file)}
    assert [key for key in read_equivalent() if key not in keys] == []


def test_each_has_a_reason() -> None:
    assert [key for key, reason in read_equivalent().items() if not reason] == []
