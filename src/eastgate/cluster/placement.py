"""Addresses of workloads, in a world that assigns them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, collapse_addresses

from eastgate.basics.records import dataclass
from eastgate.ir.addresses import Network, parse_address, parse_network

Networks = tuple[Network, ...]


LOOPBACK: Networks = (parse_network("127.0.0.1/32"), parse_network("::1/128"))
"""The addresses from which a pod calls itself, unless it shares its loopback addresses."""


@dataclass(frozen=True, slots=True)
class AssignedAddresses:
    """An address for each workload, by key.

    Placed workloads share one machine, and so its loopback addresses. So only its own address identifies a workload to
    itself, and a caller at any other address is outside of the cluster. `prove`: an address proves which workload
    calls. Any process of the machine can use any address, so that by default no address proves anything.
    """

    addresses: Mapping[str, str]
    prove: bool = False
    networks: Networks = field(init=False)
    _workloads: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        addresses = [parse_address(address) for address in self.addresses.values()]
        four = collapse_addresses(IPv4Network(address) for address in addresses if isinstance(address, IPv4Address))
        six = collapse_addresses(IPv6Network(address) for address in addresses if isinstance(address, IPv6Address))
        object.__setattr__(self, "networks", (*four, *six))
        object.__setattr__(self, "_workloads", {address: key for key, address in self.addresses.items()})

    def at(self, address: str) -> str | None:
        """Return the workload at an address, or None."""
        return self._workloads.get(address)

    def itself(self, workload: str) -> Networks:
        """Return the address from which a workload calls itself; none for an unplaced workload."""
        address = self.addresses.get(workload)
        return () if address is None else (parse_network(address),)
