"""Patterns give the recorded outcomes of Authorino itself (`authorino_patterns.json`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eastgate.dialects.kuadrant.authorino.authorization_json import AuthorizationJson
from eastgate.dialects.kuadrant.authorino.conditions import evaluate_condition
from eastgate.dialects.kuadrant.authorino.model import Pattern, PatternOperator
from eastgate.dialects.kuadrant.authorino.outcomes import ERRS, FAILS, HOLDS
from eastgate.dialects.kuadrant.authorino.request_document import RequestPart

RECORDED = json.loads(Path(__file__).with_name("authorino_patterns.json").read_text("utf-8"))
LETTERS = {HOLDS: "T", FAILS: "F", ERRS: "E"}


@pytest.mark.parametrize("selector", RECORDED["outcomes"])
@pytest.mark.parametrize("operator", list(PatternOperator))
def test_patterns_come_out_as_in_authorino(selector: str, operator: PatternOperator) -> None:
    recorded_document = RECORDED["document"]
    part = RequestPart(recorded_document, lambda: recorded_document, {}, {})
    document = AuthorizationJson(lambda: part)
    found = [
        LETTERS[evaluate_condition(Pattern(selector, operator, value), document).outcomes]
        for value in RECORDED["values"]
    ]
    recorded = RECORDED["outcomes"][selector][operator]
    assert dict(zip(RECORDED["values"], found, strict=True)) == dict(zip(RECORDED["values"], recorded, strict=True))
