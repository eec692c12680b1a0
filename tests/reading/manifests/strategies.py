"""Texts and values for tests of the readers."""

from __future__ import annotations

import json

import yaml
from hypothesis import strategies as st

from eastgate.reading.manifests import Plain
from eastgate.reading.manifests.node import NoNumberError, resolve

__all__ = ["MANIFESTS", "mutated_manifests", "plain_values", "soups"]


def _is_a_string_to_kubectl(text: str) -> bool:
    """Return whether kubectl reads a text as a string. PyYAML writes some strings without quotes (`y`, `1e3`) that
    kubectl and Eastgate read differently.
    """
    try:
        return resolve(text) == text
    except NoNumberError:
        return False


_TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12).filter(_is_a_string_to_kubectl)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: "e" not in repr(x))
    | _TEXTS
    | st.sampled_from(
        ["a\nb", "a\n", "\n\n x", "true", "null", "~", "0x1f", "- a", "a: b", "#", "'", '"', "{{", "%TAG", "---"]
    )
)


def plain_values() -> st.SearchStrategy[Plain]:
    """Return a strategy for every JSON value."""
    return st.recursive(
        _SCALARS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS | st.just("items"), inner, max_size=4),
        max_leaves=12,
    )


_PIECES = [
    *"[]{},:-?&*!|>'\"%@`#~<\\/.=+ \t\n\r",
    *"\x00\x0b\x0c\x1c\x7f\x85\xa0\u2028\u2029\ufeff\ufffe\ud800\udc80é😀aA01_",
    *[
        "\n---\n",
        "\n...\n",
        "--- ",
        "- ",
        ": ",
        "\n  ",
        "\n\t",
        "&a ",
        "*a",
        "<<: ",
        "!!str ",
        "!!int ",
        "!x ",
        "{{ ",
        " }}",
        "%YAML 1.1\n",
    ],
    *[
        "apiVersion: v1",
        "kind: Pod",
        "metadata:",
        "name: a",
        "items:",
        "kind: List",
        '"items":',
        '{"a":',
        "[[[[[[",
        "{{{{{{",
        "\r\n",
    ],
    *[
        '"apiVersion":"v1"',
        '"kind":"List"',
        '"metadata":{"name":"a"}',
        "true",
        "null",
        "1e999",
        "NaN",
        '"\\ud800"',
        '"\\x"',
        "|+\n",
        ">-\n",
    ],
]


def soups() -> st.SearchStrategy[str]:
    """Return a strategy for texts of characters with a meaning in YAML or JSON."""
    return st.lists(st.sampled_from(_PIECES), max_size=40).map("".join)


_OBJECT: dict[str, Plain] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "b", "labels": {"app": "é😀", "num": "1"}},
    "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}, {}], "args": ["a\nb", ""]}], "x": [[], [1]]},
}
_OTHER: dict[str, Plain] = {
    "apiVersion": "g/v1",
    "kind": "Policy",
    "metadata": {"name": "p"},
    "spec": {"rules": [1, 2]},
}
_LIST: dict[str, Plain] = {"apiVersion": "v1", "kind": "List", "items": [_OBJECT, _OTHER], "metadata": {}}
_ANCHORED = """\
---
apiVersion: v1
kind: &k Pod
metadata: &m {name: a, labels: &l {x: y}}
spec: {<<: [*m, {z: *l}], k: *k, s: !!str 1}
...
# behind
---
apiVersion: v1 # c
kind: List
items:
-   apiVersion: v1
    kind: Pod
    metadata: {
      name: b }
- {apiVersion: g/v1, kind: Policy, metadata: {
  name: "c"}}
-
  apiVersion: g/v1
  text: |
    x

     y
  kind: Policy
  metadata:

    name: >-
      d
"""
MANIFESTS = [
    yaml.safe_dump(_OBJECT),
    yaml.safe_dump_all([_OBJECT, _OTHER], sort_keys=False),
    yaml.safe_dump(_LIST),
    yaml.safe_dump(_LIST, default_flow_style=True, allow_unicode=True),
    _ANCHORED,
    json.dumps(_OBJECT),
    json.dumps(_LIST, indent=2),
    json.dumps(_LIST, ensure_ascii=False),
    json.dumps(_OBJECT) + "\n" + json.dumps(_OTHER),
]


@st.composite
def mutated_manifests(draw: st.DrawFn) -> str:
    """Draw a manifest with a few stretches replaced, removed, doubled or indented."""
    text = draw(st.sampled_from(MANIFESTS))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 8)))
        middle = draw(st.sampled_from(_PIECES) | st.just("") | st.just(text[start:end] * 2))
        text = text[:start] + middle + text[end:]
    return text
