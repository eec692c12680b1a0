"""A snapshot of a replica as JSON, for whoever can get at its localhost: what it follows, decides by and has served.

Nothing of the content of objects is in it, and so no secret.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec

from eastgate._version import __version__
from eastgate.control.authorizer.http_listener import HttpListener
from eastgate.control.authorizer.http_server import HttpLimits, ServedRequest, ServedResponse
from eastgate.controller.election import Election
from eastgate.controller.heartbeat import Heartbeat
from eastgate.controller.logs import cleaned
from eastgate.controller.replica import Replica

_HOST: Final = "127.0.0.1"
_JSON: Final = (("content-type", "application/json"), ("cache-control", "no-store"))
_NAMES: Final = ("localhost", _HOST)
_LIMITS: Final = HttpLimits(body=0, connections=16)


def snapshot(replica: Replica, election: Election | None = None, heartbeat: Heartbeat | None = None) -> dict[str, Any]:
    """Return what a replica knows, as plain data."""
    follower, control, writer = replica.source.follower, replica.control, replica.statuses.writer
    report = control.report()
    kinds = {
        str(resource): {
            "version": resource.version,
            "objects": follower.counts.get((resource.group, resource.kind), 0),
            "lagSeconds": round(seconds, 3),
        }
        for resource, seconds in sorted(follower.lags.items(), key=lambda item: str(item[0]))
    }
    proxies = {name: _proxy(report.proxies[name].to_json()) for name in sorted(report.proxies)}
    plan = replica.statuses.view.native
    return {
        "replica": replica.options.replica,
        "versions": {"eastgate": __version__, "python": sys.version.split()[0]},
        "leader": {"leads": election.leads, "holder": election.leader} if election is not None else None,
        "ready": replica.is_ready,
        "loopLagSeconds": round(heartbeat.lag, 3) if heartbeat is not None else None,
        "revision": report.revision,
        "kinds": kinds,
        "faults": {str(ref): [error.message for error in errors] for ref, errors in replica.source.faults.items()},
        "policies": {
            name: {"generation": applied.generation, "revision": applied.revision}
            for name, applied in sorted(report.policies.items())
        },
        "states": replica.statuses.to_json(),
        "statusWrites": dict(sorted(writer.counts.items())),
        "proxies": proxies,
        "native": {str(outcome.source): str(outcome.state) for outcome in plan.outcomes} if plan is not None else None,
        "certificates": {
            name: end.isoformat(timespec="seconds") for name, end in sorted(replica.certificate_ends().items())
        },
        "settings": replica.settings.to_json(),
        "options": {"webhooks": replica.options.webhooks, "native": replica.options.native},
    }


def _proxy(report: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in report.items() if key != "proxy"}


class DebugServer(HttpListener):
    """Answers with snapshots at `/debug`, on the loopback address only. Use it with `async with`."""

    def __init__(self, port: int, take: Callable[[], dict[str, Any]]) -> None:
        super().__init__(self._answer, _LIMITS)
        self._port = port
        self._take = take

    async def listen(self) -> asyncio.Server:
        """Open the port."""
        return await asyncio.get_running_loop().create_server(self.http.protocol, _HOST, self._port)

    def _answer(self, request: ServedRequest) -> ServedResponse:
        hosts = [host.rpartition(":")[0] or host for host in request.values("host")]
        if not all(host in _NAMES for host in hosts):  # a name that somebody has made lead here
            return ServedResponse(403)
        if request.target != "/debug" or request.method != "GET":
            return ServedResponse(404)
        return ServedResponse(200, _JSON, msgspec.json.encode(cleaned(self._take())))
