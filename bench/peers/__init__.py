"""Peers: other engines that answer the same questions. Each has an adapter with the protocol of `base`."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from bench.peers.base import Peer

__all__ = ["PEERS", "chosen", "peer"]

PEERS = ("cedar", "casbin", "rego", "vakt")  # each has a module of its name, which is imported when needed


def peer(name: str) -> Peer:
    """Return an adapter. Raises ImportError if its package, part of the extra `bench`, is not installed."""
    return cast("Peer", getattr(import_module(f"{__name__}.{name}"), name.capitalize())())


def chosen(names: str | None) -> list[Peer]:
    """Return the peers of a list such as `cedar,vakt`, or all peers for None."""
    return [peer(name) for name in (PEERS if names is None else names.split(",")) if name]
