"""External authorizers behind one Envoy: Eastgate, Authorino, and OPA with its Envoy plugin."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from bench.authorizers.engines import AUTHORINO, EASTGATE, GRPC, HTTP, OPA, PROGRAMS
from bench.authorizers.schemes import CACHED, SCHEMES
from bench.lanes import MismatchError
from bench.report import Section, Target

__all__ = ["run", "section_of"]

_ROOT = Path(__file__).parents[2]
_MAX_COLD_RATIO = 2.0
_MEASURED = (
    "Requests per second through an Envoy that asks an authorizer about each; p50 and p99 of the answer in ms; and "
    "CPU us of the authorizer for each check. times: how many answers Eastgate gives for one of the peer, in the same "
    "round, by requests and by CPU time. On a shared machine, a process with several threads gets more of its core "
    "than one with one thread, and other processes disturb some rounds only; so the targets use CPU time. Every "
    "authorizer is one process on the one core under test (Go: GOMAXPROCS=1). Envoy has one worker and answers "
    "allowed requests itself; Envoy and the load (16 connections) use the other cores. Medians of rounds in turns. No "
    "decisions are logged. JWT: an RS256 token of an issuer, and a pattern on a claim. warm: one token; cold: a token "
    "never seen before with each request; cached: warm, with Authorino configured to remember the identity, which by "
    "default it does not. API key: one of 100 in Secrets. CEL and Rego: method and a header."
)

Lanes = Mapping[tuple[str, str, str], Mapping[str, Any]]


def run(*, quick: bool) -> Iterator[Section]:
    """Measure all authorizers; a short run measures Eastgate alone."""
    if quick:
        options = {"engines": [EASTGATE], "rounds": 2, "seconds": 0.1, "tokens": 300}
        yield section_of(_measure(options, alone=False))
        return
    engines = [name for name in PROGRAMS if _has_programs(name)]
    options = {"engines": engines, "rounds": 9, "seconds": 0.4, "tokens": 12_000}
    yield section_of(_measure(options, alone=AUTHORINO in engines))


def _has_programs(engine: str) -> bool:
    """Build the programs of an authorizer while there is a network. Return whether that succeeded."""
    import pytest
    from tests.programs import find

    try:
        for program in PROGRAMS[engine]:
            find(program)
        if engine == AUTHORINO:
            from tests.authorino.running import definition

            definition()
    except pytest.fail.Exception as problem:
        print(f"without {engine}: {problem}", file=sys.stderr)
        return False
    return True


def _measure(options: Mapping[str, object], *, alone: bool) -> list[dict[str, Any]]:
    """Measure in a process of its own. `alone`: in its own network namespace; Authorino listens on every address."""
    command = [sys.executable, "-m", "bench.authorizers.measuring", json.dumps(options)]
    if alone:
        unshare = shutil.which("unshare")
        if unshare is None:
            raise FileNotFoundError("running Authorino by itself needs unshare, of util-linux")
        own_user = [] if os.geteuid() == 0 else ["--map-root-user"]
        command = [unshare, *own_user, "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        kind = MismatchError if MismatchError.__name__ in done.stderr else AssertionError
        raise kind(done.stderr[-2000:])
    lanes: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return lanes


def section_of(measured: list[dict[str, Any]]) -> Section:
    """Return the table of the measured lanes."""
    lanes = {(lane["authorizer"], lane["protocol"], lane["scheme"]): lane for lane in measured}
    peers = [name for name in (AUTHORINO, OPA) if any(name == authorizer for authorizer, _, _ in lanes)]
    columns = [f"{name} {unit}" for name in (EASTGATE, *peers) for unit in ("req/s", "p50", "p99", "us")]
    section = Section(
        "Authorizers behind Envoy",
        _MEASURED,
        ("protocol", "scheme", *columns, *(f"times {name}{by}" for name in peers for by in ("", " (CPU)"))),
    )
    for protocol in (GRPC, HTTP):
        for scheme in SCHEMES:
            section.rows.append([protocol, scheme, *_row(lanes, protocol, scheme, peers)])
    section.points = [
        {key: value for key, value in lane.items() if key not in ("rates", "cpu_rates")} for lane in measured
    ]
    if AUTHORINO in peers:
        section.targets = list(_targets(lanes))
    return section


def _own(scheme: str) -> str:
    """Return the scheme that Eastgate is measured with in a row. Eastgate always remembers tokens."""
    return "JWT, warm" if scheme == CACHED else scheme


def _row(lanes: Lanes, protocol: str, scheme: str, peers: list[str]) -> Iterator[str | float]:
    for name in (EASTGATE, *peers):
        lane = lanes.get((name, protocol, _own(scheme) if name == EASTGATE else scheme))
        yield from ["-"] * 4 if lane is None else (lane["rate"], lane["p50"] * 1e3, lane["p99"] * 1e3, lane["cpu_us"])
    for name in peers:
        yield _times(lanes, protocol, scheme, name, "rates") or "-"
        yield _times(lanes, protocol, scheme, name, "cpu_rates") or "-"


def _times(lanes: Lanes, protocol: str, scheme: str, peer: str, what: str = "cpu_rates") -> float | None:
    """Return the median ratio of Eastgate's rate to the peer's in the same round, or None."""
    own, other = lanes.get((EASTGATE, protocol, _own(scheme))), lanes.get((peer, protocol, scheme))
    if own is None or other is None:
        return None
    return float(median(a / b for a, b in zip(own[what], other[what], strict=True)))


def _targets(lanes: Lanes) -> Iterator[Target]:
    for protocol in (GRPC, HTTP):
        warm = _times(lanes, protocol, "JWT, warm", AUTHORINO) or 0.0
        yield Target(f"JWT with warm caches over {protocol}: ahead of Authorino", f"{warm:.2f} times", warm >= 1.0)
        cold = _times(lanes, protocol, "JWT, cold", AUTHORINO) or 0.0
        reached = f"{1 / cold:.2f} times as long" if cold else "nothing"
        yield Target(
            f"JWT with cold caches over {protocol}: within 2 times Authorino", reached, cold * _MAX_COLD_RATIO >= 1.0
        )
