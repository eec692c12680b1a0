"""No document crashes the reader: each value of a large policy is replaced by every sort of wrong value."""

from __future__ import annotations

from eastgate.settings import Settings
from tests.dialects.gep3779.test_no_document_crashes import WRONG, changed, paths, read
from tests.dialects.kuadrant.test_authpolicy import DOCUMENT
from tests.dialects.reading import document

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


def test_there_is_a_policy_or_there_is_a_reason() -> None:
    node = document(LARGE).node
    assert node is not None
    whole = node.plain()
    assert read(whole, Settings()) == 0
    for path in paths(whole):
        read(changed(whole, path), Settings())
        for wrong in WRONG:
            findings = read(changed(whole, path, wrong), Settings())
            assert findings <= 1 or isinstance(wrong, dict | list), (path, wrong)
