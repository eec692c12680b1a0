"""The time from a changed policy to the first request or connection with the new verdict, and its parts."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.enforcement.envoys import until
from bench.enforcement.load import accepts, request
from bench.enforcement.plane import PORT, Plane
from bench.enforcement.rules import SERVER, authority_of, identity, path, policy
from bench.report import Section, Target
from eastgate.authority import changes as authority_changes
from eastgate.authority.reading import Manifests
from eastgate.control.enforcement import Enforcement
from eastgate.control.fleet import SiteChange, everything
from eastgate.dialects import Policy

__all__ = ["Changes", "enforcing"]

_ROOT = Path(__file__).parent.parent.parent
_MAX_ENFORCED_MS = 10.0
_MIN_SAMPLES = 10  # for a target


@dataclass(frozen=True, slots=True)
class Change:
    """One change, in ms since the call of `put_policy`: until it returned, until the last proxy had acknowledged, and
    until the last one was seen to enforce it. `closed`: until a connection that is no longer allowed was closed.
    """

    built: float
    acked: float
    seen: float
    closed: float | None


@asynccontextmanager
async def enforcing(rules: int, proxies: int, *, http: bool) -> AsyncIterator[tuple[Plane, Enforcement, list[str]]]:
    """Yield a control plane and proxies that enforce this many rules."""
    authority = authority_of(rules, http=http, pods=proxies)
    async with Plane() as plane:
        enforcement = Enforcement(authority, plane.store)
        nodes = sorted(authority.world.workloads)
        sites = plane.sites(nodes)
        enforcement.follow(SiteChange(sites), everything(authority.world))
        for node in nodes:
            enforcement.put_svid(node, plane.svid(SERVER))
            enforcement.put_trust(node, plane.bundles)
        plane.start_origin(())
        await plane.start(nodes)
        await plane.listening((site.address, PORT) for site in sites.values())
        until(lambda: accepts(plane.app), "the application does not listen")
        yield plane, enforcement, nodes


def put_policy(enforcement: Enforcement, changed: Policy) -> None:
    """Change one policy, and publish the resources that follow."""
    news = Manifests(enforcement.authority.settings)
    news.policies.append(changed)
    enforcement.follow(SiteChange(), enforcement.authority.apply(authority_changes.Changes(news)))


class _Watcher:
    """The process of `bench.enforcement.watcher`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, plane: Plane, addresses: Iterable[str], rule: int, *, http: bool) -> _Watcher:
        svid = plane.svid(identity(rule))
        chain, key = plane.folder / "chain", plane.folder / "key"
        chain.write_text(svid.chain, encoding="ascii")
        key.write_text(svid.private_key, encoding="ascii")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.enforcement.watcher"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=_ROOT,
        )
        watcher = cls(process)
        watcher.send(
            json.dumps(
                {
                    "chain": str(chain),
                    "key": str(key),
                    "request": request(path(rule)).decode(),
                    "addresses": [(address, PORT) for address in addresses],
                    "anew": not http,
                }
            )
        )
        return watcher

    def send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())

    async def receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        received: dict[str, Any] = json.loads(await self._process.stdout.readline())
        return received

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


async def changes(rules: int, proxies: int, samples: int, *, http: bool) -> list[Change]:
    """Measure changes of the last rule, to another rule and back."""
    found = []
    async with enforcing(rules, proxies, http=http) as (plane, enforcement, nodes):
        addresses = [enforcement.sites[node].address for node in nodes]
        watcher = await _Watcher.start(plane, addresses, rules - 1, http=http)
        for number in range(samples):
            other = number % 2 == 0
            changed = policy(rules - 1, http=http, other=other)
            wanted = 200 if not other else 403 if http else 0
            watcher.send(str(wanted))
            before = (await watcher.receive())["before"]
            assert wanted not in before, f"{wanted} before anything has changed"
            began = time.monotonic()
            put_policy(enforcement, changed)
            built = time.monotonic()
            await plane.settled(nodes)
            acked = time.monotonic()
            received = await watcher.receive()
            closed = max(received["closed"]) if received["closed"] else None
            found.append(
                Change(
                    (built - began) * 1e3,
                    (acked - began) * 1e3,
                    (max(received["seen"]) - began) * 1e3,
                    (closed - began) * 1e3 if closed is not None else None,
                )
            )
        await watcher.stop()
    return found


class Changes:
    """A table with one row for each number of rules and proxies."""

    def __init__(self, samples: int) -> None:
        self._samples = samples
        self.section = Section(
            "Enforcement: changes",
            "Wall-clock ms from the call of put_policy with one changed rule until the last proxy was seen to enforce "
            f"it: the median and the most of {samples} changes. request: the next request on an open connection gets "
            "the other verdict (only a filter's configuration changes). connection: the next new connection does (a "
            "filter chain comes or goes), and an open one that is no longer allowed is closed. build: until put_policy "
            "returned, all in Python; acked: until all proxies had accepted; the rest is on the wire and in "
            "Envoy. Another process on the same machine sends requests without a pause.",
            ("rule on", "rules", "proxies", "build", "acked", "enforced", "most", "closed", "most"),
        )

    async def add(self, rules: int, proxies: int, *, http: bool) -> None:
        """Measure one number of rules and proxies."""
        found = await changes(rules, proxies, self._samples, http=http)
        what = "request" if http else "connection"
        seen, closed = [one.seen for one in found], [one.closed for one in found if one.closed is not None]
        built, acked = median(one.built for one in found), median(one.acked for one in found)
        self.section.rows.append([what, rules, proxies, built, acked, median(seen), max(seen), *_both(closed)])
        self.section.points.append(
            {"changed": what, "rules": rules, "proxies": proxies, "built_ms": built, "acked_ms": acked,
             "enforced_ms": median(seen), "most_ms": max(seen), "closed_ms": median(closed) if closed else None}
        )  # fmt: skip
        if http and rules == proxies == 1 and self._samples >= _MIN_SAMPLES:
            self.section.targets.append(
                Target(
                    f"a change of one rule is enforced in under {_MAX_ENFORCED_MS:.0f} ms",
                    f"{median(seen):.3g} ms",
                    median(seen) < _MAX_ENFORCED_MS,
                )
            )


def _both(closed: Sequence[float]) -> list[str | float]:
    return [median(closed), max(closed)] if closed else ["-", "-"]
