"""Peers: what the same questions cost elsewhere. One adapter for each, all with the protocol of `base`."""

from __future__ import annotations

from bench.peers.base import Peer
from bench.peers.casbin import Casbin
from bench.peers.cedar import Cedar
from bench.peers.rego import Rego
from bench.peers.vakt import Vakt

__all__ = ["PEERS", "chosen"]

PEERS: dict[str, Peer] = {peer.name: peer for peer in (Cedar(), Casbin(), Rego(), Vakt())}


def chosen(names: str | None) -> list[Peer]:
    """The peers of a list such as `cedar,vakt`; all of them where there is none."""
    return list(PEERS.values()) if names is None else [PEERS[name] for name in names.split(",") if name]
