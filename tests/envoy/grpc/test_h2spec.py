"""h2spec, a test suite for HTTP/2, against the gRPC server on each event loop.

Its requests are changed to calls of gRPC (`tests/programs/go/h2spec/changes.json`), so that the server answers them.
`LEFT` names each test of h2spec that the server does not pass, as `section/number`, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.envoy.grpc.peers import Service
from tests.envoy.grpc.test_server import serving
from tests.loops import LOOPS, run_on
from tests.missing import give_up
from tests.programs.building import are_missing, find

ALL = 147
SECONDS = 30  # that h2spec waits for an answer, and for each failing test
LEFT: Mapping[str, str] = {}


async def _report(program: Path, report: Path) -> None:
    async with serving(Service()) as (port, _):
        where = ("--port", str(port), "--path", "/t.T/Echo")
        how = ("--strict", "--timeout", str(SECONDS), "--junit-report", str(report))
        process = await asyncio.create_subprocess_exec(
            program, *where, *how, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await process.communicate()
        assert report.exists(), output.decode()


@pytest.mark.real
@pytest.mark.parametrize("loop", LOOPS)
def test_the_server_passes_what_is_not_listed(tmp_path: Path, loop: str) -> None:
    if are_missing("h2spec"):
        give_up("h2spec", "install Go to build it")
    report = tmp_path / "h2spec.xml"
    run_on(loop, _report(find("h2spec"), report))
    failures, tests = {}, 0
    for suite in ElementTree.parse(report).getroot():  # noqa: S314 - h2spec has just written it
        for number, case in enumerate(suite.iter("testcase"), 1):
            tests += 1
            if len(case):
                failures[f"{suite.get('package')}/{number}"] = "".join(case.itertext())
    assert tests == ALL
    assert failures.keys() == LEFT.keys(), failures
