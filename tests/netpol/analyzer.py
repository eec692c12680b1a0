"""np-guard's `netpolicy list`: the allowed connections by pod, protocol and port."""

from __future__ import annotations

import ipaddress
import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.programs import find
from tests.worlds.network_oracle import Address, Ask, Manifest, address_of

Ranges = Mapping[str, tuple[tuple[int, int], ...]]  # by protocol
_EVERYTHING: Ranges = dict.fromkeys(("TCP", "UDP", "SCTP"), ((1, 65535),))


class Connectivity:
    """The list of allowed connections of a cluster."""

    def __init__(self, manifests: Sequence[Manifest], folder: Path) -> None:
        for manifest in manifests:
            metadata = manifest["metadata"]
            name = f"{manifest['kind']}-{metadata.get('namespace', '')}-{metadata['name']}.json"
            (folder / name).write_text(json.dumps(manifest), encoding="utf-8")
        command = [str(find("netpolicy")), "list", "-q", "-o", "json", "--dirpath", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        self.listed = [
            (entry["src"], entry["dst"], _connections(entry["conn"])) for entry in json.loads(done.stdout or "[]") or []
        ]

    def allows(self, ask: Ask) -> bool:
        """Return whether an entry of the list contains the connection."""
        assert ask.port is not None
        return any(
            _is_end(source, ask.source)
            and _is_end(destination, ask.to)
            and _is_in(ask.port, ranges.get(ask.protocol.upper(), ()))
            for source, destination, ranges in self.listed
        )


def _is_end(listed: str, asked: str) -> bool:
    kind, _, name = asked.partition(":")
    if kind == "pod":
        return listed.partition("[")[0] == name and listed.endswith("]")
    return "/" not in listed and any(_is_between(address_of(name), part) for part in listed.split(","))


def _is_between(address: Address, listed: str) -> bool:
    first, _, last = listed.strip().partition("[")[0].partition("-")
    return int(ipaddress.ip_address(first)) <= int(address) <= int(ipaddress.ip_address(last or first))


def _is_in(port: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(first <= port <= last for first, last in ranges)


def _connections(text: str) -> Ranges:
    """Parse `TCP 80-90,443,UDP 53`."""
    if text == "All Connections":
        return _EVERYTHING
    ranges: dict[str, tuple[tuple[int, int], ...]] = {}
    protocol = ""
    for part in text.split(","):
        named, _, numbers = part.strip().rpartition(" ")
        protocol = named or protocol
        first, _, last = numbers.partition("-")
        ranges[protocol] = (*ranges.get(protocol, ()), (int(first), int(last or first)))
    return ranges
