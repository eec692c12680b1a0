"""Of a file that a build reads, only the documents of a kind are read to find where one was written."""

from __future__ import annotations

import json

import pytest

from eastgate.reading.manifests.node import Node
from eastgate.reading.repository.origins import WrittenFile

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
POLICY = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: web}\n"
IN_A_LIST = f"apiVersion: v1\nkind: List\nitems:\n- {POLICY.replace(chr(10), chr(10) + '  ')}\n"


def _kinds(nodes: list[Node]) -> list[str]:
    return [str(node["kind"].value) for node in nodes]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (f"{POD}---\n{POLICY}---\n{POD}", ["NetworkPolicy"]),
        (POLICY.replace("NetworkPolicy", '"NetworkPolicy"'), ["NetworkPolicy"]),
        (f"{POD}---\n{IN_A_LIST}", ["List"]),
        ("{apiVersion: v1, kind: NetworkPolicy, metadata: {name: a}}\n", ["NetworkPolicy"]),
        (POD, []),
        (json.dumps({"kind": "Pod", "metadata": {"name": "NetworkPolicy"}}), ["Pod"]),
    ],
)
def test_documents_that_may_be_of_a_kind(text: str, kinds: list[str]) -> None:
    assert _kinds(WrittenFile("web.yaml", text.encode()).nodes_of("NetworkPolicy")) == kinds


def test_documents_that_were_read_are_not_read_again() -> None:
    file = WrittenFile("web.yaml", f"{POD}---\n{POLICY}".encode())
    assert file.nodes_of("NetworkPolicy")[0].span.line == 5
    assert file.nodes_of("NetworkPolicy") is file.nodes_of("NetworkPolicy")
