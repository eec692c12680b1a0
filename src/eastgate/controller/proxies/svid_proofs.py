"""Proves pods by the SVID of their proxies, for those that have no token.

An SVID proves an account and not a pod. So beside it counts the address that the proxy calls from: it is taken for the
proxy of the pod that has this address, if that runs as the account. Whoever could send from the address of another pod
of the same account would get what that pod gets: a certificate of the same account, and the policies at that pod.
"""

from __future__ import annotations

from collections.abc import Callable

from cryptography import x509

from eastgate.cluster import World
from eastgate.control.identity import PeerError
from eastgate.control.identity.peers import identity_of
from eastgate.controller.proxies.membership import PodIdentity
from eastgate.envoy.server.authentication import AuthenticationError, ProxyCredentials
from eastgate.ir.addresses import parse_address
from eastgate.settings import Settings


class SvidProofs:
    """Proofs by a certificate, which the handshake has verified with the bundle of the own trust domain."""

    def __init__(self, world: Callable[[], World], settings: Settings) -> None:
        self._world = world
        self._settings = settings

    def may_prove(self, credentials: ProxyCredentials) -> bool:
        """Return whether there is a certificate."""
        return bool(credentials.certificate)

    async def prove(self, credentials: ProxyCredentials) -> PodIdentity:
        """Return the pod that has the address of the proxy, and the account of its SVID. Raises AuthenticationError."""
        try:
            identity = identity_of(x509.load_pem_x509_certificate(credentials.certificate))
        except (ValueError, PeerError):
            raise AuthenticationError("the certificate is no SVID") from None
        pod = self._world().by_ip(_usual_address(credentials.address))
        if pod is None or not pod.is_pod or pod.derived:
            raise AuthenticationError("the proxy calls from an address that is no pod's")
        if pod.identity_in(self._settings.trust_domain) != identity:
            raise AuthenticationError(f"{pod.key} does not run as the account of the certificate")
        return PodIdentity(pod.namespace, pod.name, pod.uid, pod.service_account)


def _usual_address(address: str) -> str:
    """Return an address as the world spells it; the empty one for what is none."""
    try:
        return str(parse_address(address))
    except ValueError:
        return ""
