"""Peers: what the same questions cost elsewhere. One adapter for each, all with the protocol of `base`."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from bench.peers.base import Peer

__all__ = ["PEERS", "chosen", "peer"]

PEERS = ("cedar", "casbin", "rego", "vakt")  # each in the module of its name; imported only where it is asked


def peer(name: str) -> Peer:
    """An adapter. Raises ImportError where its package is not installed: they are in the extra `bench`."""
    return cast("Peer", getattr(import_module(f"{__name__}.{name}"), name.capitalize())())


def chosen(names: str | None) -> list[Peer]:
    """The peers of a list such as `cedar,vakt`; all of them where there is none."""
    return [peer(name) for name in (PEERS if names is None else names.split(",")) if name]
