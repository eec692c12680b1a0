"""Authenticates the proxies of pods: one of several proofs says which pod it is, and the pod says which proxy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from eastgate.cluster import World
from eastgate.controller.proxies.membership import PodIdentity, identify
from eastgate.envoy.server.authentication import AuthenticatedProxy, AuthenticationError, ProxyCredentials


class PodProof(Protocol):
    """A way to prove which pod a proxy runs in."""

    def may_prove(self, credentials: ProxyCredentials) -> bool:
        """Return whether these credentials may be of this kind; costs little."""
        ...

    async def prove(self, credentials: ProxyCredentials) -> PodIdentity:
        """Return the pod that these credentials were issued to. Raises AuthenticationError."""
        ...


class PodAuthenticator:
    """The authenticator of proxies in the cluster. `world` is asked for the pods that there are now.

    Of the proofs the first counts that may prove something by the credentials.
    """

    def __init__(self, world: Callable[[], World], proofs: Sequence[PodProof]) -> None:
        self._world = world
        self._proofs = tuple(proofs)
        self._admitted: dict[str, PodIdentity] = {}
        self._on_revoke: list[Callable[[str], None]] = []

    def may_authenticate(self, credentials: ProxyCredentials) -> bool:
        """Return whether the credentials may prove anything."""
        return any(proof.may_prove(credentials) for proof in self._proofs)

    async def authenticate(self, credentials: ProxyCredentials, node_id: str) -> AuthenticatedProxy:
        """Return the proxy of the pod that the credentials prove. Raises AuthenticationError."""
        proof = next((proof for proof in self._proofs if proof.may_prove(credentials)), None)
        if proof is None:
            raise AuthenticationError("credentials of a pod are needed")
        proven = await proof.prove(credentials)
        proxy = identify(self._world(), proven, node_id)  # by the world as it is after the answer
        self._admitted[proxy.name] = proven
        return proxy

    def on_revoke(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call `callback` with each proxy whose pod is gone, until the function that this returns is called."""
        self._on_revoke.append(callback)
        return lambda: self._on_revoke.remove(callback)

    def revoke_missing(self) -> frozenset[str]:
        """Disconnect the admitted proxies that would not be admitted now; return them.

        To be called when pods, their owners or Gateways have changed.
        """
        world, gone = self._world(), set()
        for name, proven in list(self._admitted.items()):
            try:
                identify(world, proven, name)
            except AuthenticationError:
                gone.add(name)
                del self._admitted[name]
                for callback in tuple(self._on_revoke):
                    callback(name)
        return frozenset(gone)
