"""One Authorino, and issuers of tokens, for a module of tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.authorino.requests import Issuers
from tests.authorino.running import SUPERSEDING, Authorino
from tests.reading.jwt.issuer import running


@pytest.fixture(scope="module")
def authorino() -> Iterator[Authorino]:
    folder = Path(tempfile.mkdtemp(prefix="authorino"))
    with Authorino(folder) as started:
        yield started


@pytest.fixture(scope="module")
def issuers() -> Iterator[Issuers]:
    with running() as server:
        yield Issuers(server)


@pytest.fixture(scope="module", params=[False, True], ids=["", "superseding"])
def either_authorino(request: pytest.FixtureRequest) -> Iterator[Authorino]:
    """Yield an Authorino in which a wildcard takes the hosts that it covers, and then one in which it does not."""
    folder = Path(tempfile.mkdtemp(prefix="authorino"))
    with Authorino(folder, *((SUPERSEDING,) if request.param else ())) as started:
        yield started
