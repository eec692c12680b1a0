"""No document crashes the reader: each value of a large policy is replaced by every sort of wrong value."""

from __future__ import annotations

import pytest

from eastgate.settings import Settings
from tests.dialects.kuadrant.test_authpolicy import DOCUMENT
from tests.dialects.reading import document
from tests.dialects.test_no_document_crashes import WRONG, changed, paths, read

LARGE = DOCUMENT.replace(
    "  name: toystore\nspec:",
    """\
  name: toystore
  namespace: shop
  labels: {app: toystore}
  annotations: {eastgate.dev/mode: enforce}
  creationTimestamp: "2024-01-01T00:00:00Z"
spec:""",
).replace("    name: toystore\n  rules:", "    name: toystore\n    namespace: shop\n  rules:\n  - {}")


def whole() -> object:
    node = document(LARGE).node
    assert node is not None
    return node.plain()


def test_nothing_is_wrong_with_the_document_itself() -> None:
    assert read(document(LARGE).node.plain(), Settings()) == 0  # type: ignore[union-attr]


@pytest.mark.parametrize("section", ["metadata", "targetRef", "rules", "authSchemes", ""])
def test_there_is_a_policy_or_there_is_a_reason(section: str) -> None:
    node = document(LARGE).node
    assert node is not None
    plain = node.plain()
    for path in paths(plain):
        if section not in (path[0], *path[1:2], ""):
            continue
        read(changed(plain, path), Settings())
        for wrong in WRONG:
            findings = read(changed(plain, path, wrong), Settings())
            assert findings <= 1 or isinstance(wrong, dict | list), (path, wrong)
