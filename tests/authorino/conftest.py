"""One Authorino, and issuers of tokens, for a module of tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.authorino.requests import Issuers
from tests.authorino.running import Authorino
from tests.languages.jwt.issuer import running


@pytest.fixture(scope="module")
def authorino() -> Iterator[Authorino]:
    folder = Path(tempfile.mkdtemp(prefix="authorino"))
    with Authorino(folder) as started:
        yield started


@pytest.fixture(scope="module")
def issuers() -> Iterator[Issuers]:
    with running() as server:
        yield Issuers(server)
