"""A real Envoy with the listeners of many tables, and its records about each connection."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from eastgate.local.machine.envoy import find_envoy
from tests.programs import Processes, free_port

_FLAGS = ("--disable-hot-restart", "--concurrency", "1", "--log-level", "error", "--file-flush-interval-msec", "20")
_LOG_SECONDS = 5.0
_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_FILE_LOG = "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog"
_FIELDS = {
    "local": "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%",
    "details": "%RESPONSE_CODE_DETAILS%",
    "termination": "%CONNECTION_TERMINATION_DETAILS%",
    "transport": "%DOWNSTREAM_TRANSPORT_FAILURE_REASON%",
    "http": "%DYNAMIC_METADATA(envoy.filters.http.rbac)%",
    "network": "%DYNAMIC_METADATA(envoy.filters.network.rbac)%",
}

Config = dict[str, Any]


class EnvoyFailed(Exception):  # noqa: N818 - what it did
    """Envoy did not accept a configuration."""


def access_log(folder: Path) -> Config:
    """Return the configuration of an access log for an Envoy in this folder."""
    file = {"@type": _FILE_LOG, "path": str(folder / "access.log"), "log_format": {"json_format": _FIELDS}}
    return {"name": "envoy.access_loggers.file", "typed_config": file}


def cluster_on_loopback(name: str, port: int, *, by_grpc: bool) -> Config:
    """Return a cluster with a port of this machine."""
    endpoint = {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}
    cluster: Config = {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "2s",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [{"endpoint": endpoint}]}]},
    }
    if by_grpc:
        options = {
            "@type": f"type.googleapis.com/{_HTTP_OPTIONS}",
            "explicit_http_config": {"http2_protocol_options": {}},
        }
        cluster["typed_extension_protocol_options"] = {_HTTP_OPTIONS: options}
    return cluster


class Envoy(Processes):
    """A running Envoy. Its listeners write the access log of its folder."""

    def __init__(self, folder: Path, listeners: list[Config], clusters: list[Config]) -> None:
        super().__init__(folder)
        self._listeners, self._clusters = listeners, clusters
        self._admin = free_port()

    def start(self) -> None:
        """Start Envoy, and wait until it listens. Raises EnvoyFailed if it ends."""
        admin = {"socket_address": {"address": "127.0.0.1", "port_value": self._admin}}
        bootstrap = {
            "node": {"id": "istio", "cluster": "istio"},
            "admin": {"address": admin},
            "static_resources": {"listeners": self._listeners, "clusters": self._clusters},
        }
        file = self.folder / "envoy.json"
        file.write_text(json.dumps(bootstrap), encoding="utf-8")
        (self.folder / "access.log").touch()
        self.run([find_envoy(), *_FLAGS, "-c", file])
        try:
            self.wait_until(self._is_live)
        except AssertionError as error:
            raise EnvoyFailed(str(error)) from error

    def records(self, callers: Collection[str]) -> dict[str, list[Config]]:
        """Return the records by the address and port of callers. Waits until each of them has a record."""
        end = time.monotonic() + _LOG_SECONDS
        while True:
            records: dict[str, list[Config]] = {}
            for line in (self.folder / "access.log").read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                records.setdefault(record["local"], []).append(record)
            if records.keys() >= set(callers) or time.monotonic() > end:
                return records
            time.sleep(0.05)

    def _is_live(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._admin, timeout=5)
        try:
            connection.request("GET", "/ready")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()
