"""Schemes of today's kinds for tests, read from text."""

from __future__ import annotations

from collections.abc import Mapping

from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.dialects.kuadrant.authorino.model import Scheme
from eastgate.dialects.kuadrant.schemes import AUTH_CONFIG_SPEC, read_scheme
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Check, Shape, check
from eastgate.settings import Settings
from tests.dialects.kuadrant.scheme_texts import node

HOSTS = "hosts: [a.example]\n"


def problems(shape: Shape[Settings], text: str | Node) -> list[Diagnostic]:
    reporter = Reporter()
    check(shape, node(text) if isinstance(text, str) else text, Check(reporter, Settings()))
    return reporter.diagnostics


def ids(diagnostics: list[Diagnostic]) -> list[str]:
    return [diagnostic.code.id for diagnostic in diagnostics]


def config(text: str, shape: Shape[Settings] = AUTH_CONFIG_SPEC) -> Scheme:
    """Return the scheme of a valid AuthConfig. Hosts are added."""
    written = node(HOSTS + text)
    assert problems(shape, written) == []
    return read_scheme(written, "shop")


def parts_of(**sections: Mapping[str, Node]) -> dict[tuple[str, str], Node]:
    """Return entries by section and name. Two underscores in the name of a section mean a dot."""
    return {(section.replace("__", "."), name): entry for section, by in sections.items() for name, entry in by.items()}
