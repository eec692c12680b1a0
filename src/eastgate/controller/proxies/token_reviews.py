"""Proves pods by their service-account tokens, which the API server reviews.

A token counts only if it is for the audience of the control plane and was issued to a pod. Then the pod, and not what
the proxy says, decides which proxy it is. A token that cannot be such a token by what it says itself is refused without
asking; whatever it says, only the API server's answer admits anybody.

Answers are kept for a short time, under a hash of the token and never past its end, so that a thousand proxies that
connect again after a restart ask once each. While the API server cannot be reached new streams are refused, and those
that are open stay.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, Protocol

import msgspec
from cryptography import x509

from eastgate.basics.records import dataclass
from eastgate.cluster import World
from eastgate.control.identity import PeerError
from eastgate.control.identity.peers import identity_of
from eastgate.controller.proxies.tracking import PodIdentity, find_pod, identify
from eastgate.envoy.server.session import AuthenticatedProxy, AuthenticationError, ProxyCredentials, UnavailableError
from eastgate.ir.addresses import parse_address
from eastgate.reading.kubernetes import ApiError, JsonObject, Resource, UnreachableError
from eastgate.settings import Settings

# Authenticates the proxies of pods: one of several proofs says which pod it is, and the pod says which proxy.


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


# Proves pods by the SVID of their proxies, for those that have no token.
#
# An SVID proves an account and not a pod. So beside it counts the address that the proxy calls from: it is taken for
# the proxy of the pod that has this address, if that runs as the account. Whoever could send from the address of
# another pod of the same account would get what that pod gets: a certificate of the same account, and the policies at
# that pod.


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


AUDIENCE: Final = "eastgate"
TOKEN_REVIEW: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
_POD_NAME: Final = "authentication.kubernetes.io/pod-name"
_POD_UID: Final = "authentication.kubernetes.io/pod-uid"
_ACCOUNT: Final = "system:serviceaccount:"
_LONGEST_TOKEN: Final = 16 * 1024
_KEPT: Final = 60.0  # seconds that an answer is kept
_REFUSAL_KEPT: Final = 5.0
_MOST_KEPT: Final = 10_000
_AT_ONCE: Final = 32  # reviews


class ReviewApi(Protocol):
    """The call to the API server that is needed: that of `eastgate.reading.kubernetes.Connection`."""

    async def create(self, resource: Resource, obj: Mapping[str, Any]) -> JsonObject:
        """Create an object, here a review, and return it with its status."""
        ...


@dataclass(frozen=True, slots=True)
class _Answer:
    pod: PodIdentity | None
    refusal: str
    until: float


class TokenReviews:
    """Proofs by tokens. `world` is asked for the pods that there are now.

    `clock` is the time in seconds since 1970.
    """

    def __init__(self, api: ReviewApi, world: Callable[[], World], clock: Callable[[], float] = time.time) -> None:
        self._api = api
        self._world = world
        self._clock = clock
        self._answers: dict[bytes, _Answer] = {}
        self._asking = asyncio.Semaphore(_AT_ONCE)

    def may_prove(self, credentials: ProxyCredentials) -> bool:
        """Return whether a token says that it is a pod's, for this audience, and not over."""
        return self._claims(credentials) is not None

    async def prove(self, credentials: ProxyCredentials) -> PodIdentity:
        """Return the pod of a token. Raises AuthenticationError."""
        claims = self._claims(credentials)
        if claims is None:
            raise AuthenticationError("a token of a pod for this control plane is needed")
        find_pod(self._world(), claims.pod)  # or there is no need to ask
        return await self._review(credentials.token, claims)

    def _claims(self, credentials: ProxyCredentials) -> _Claims | None:
        claims = _read_claims(credentials.token)
        current = claims is not None and claims.exp > self._clock() and AUDIENCE in claims.audiences
        return claims if current else None

    async def _review(self, token: str, claims: _Claims) -> PodIdentity:
        """Return the pod of a token, by an answer that was kept or is asked for now. Raises AuthenticationError."""
        key = sha256(token.encode()).digest()
        answer = self._answers.get(key)
        if answer is None or answer.until <= self._clock():
            async with self._asking:
                answer = await self._ask(token, claims)
            self._keep(key, answer)
        if answer.pod is None:
            raise AuthenticationError(answer.refusal)
        return answer.pod

    async def _ask(self, token: str, claims: _Claims) -> _Answer:
        spec = {"token": token, "audiences": [AUDIENCE]}
        review = {"apiVersion": TOKEN_REVIEW.api_version, "kind": TOKEN_REVIEW.kind, "spec": spec}
        try:
            answer = await self._api.create(TOKEN_REVIEW, review)
        except UnreachableError:
            raise UnavailableError("the API server cannot be reached to review the token") from None
        except ApiError as error:
            raise UnavailableError(
                f"the API server does not review the token: {error.reason or error.status}"
            ) from None
        now = self._clock()
        try:
            return _Answer(read_review(answer), "", min(now + _KEPT, claims.exp))
        except AuthenticationError as error:
            return _Answer(None, str(error), now + _REFUSAL_KEPT)

    def _keep(self, key: bytes, answer: _Answer) -> None:
        if len(self._answers) >= _MOST_KEPT:
            now = self._clock()
            self._answers = {kept: each for kept, each in self._answers.items() if each.until > now}
        if len(self._answers) >= _MOST_KEPT:
            self._answers.clear()
        self._answers[key] = answer


def read_review(review: Mapping[str, Any]) -> PodIdentity:
    """Return the pod that an answered TokenReview proves. Raises AuthenticationError where it proves none."""
    status = review.get("status") or {}
    if status.get("authenticated") is not True:
        raise AuthenticationError("the API server does not accept the token")
    if AUDIENCE not in (status.get("audiences") or ()):
        raise AuthenticationError("the token is for another audience")
    user = status.get("user") or {}
    name, extra = str(user.get("username") or ""), user.get("extra") or {}
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":")
    if not name.startswith(_ACCOUNT) or not namespace or not account or ":" in account:
        raise AuthenticationError("the token is not that of a service account")
    pods: list[str] = extra.get(_POD_NAME) or []
    uids: list[str] = extra.get(_POD_UID) or []
    if len(pods) != 1 or len(uids) != 1 or not pods[0] or not uids[0]:
        raise AuthenticationError("the token was not issued to a pod")
    return PodIdentity(namespace, str(pods[0]), str(uids[0]), account)


# What a token says of itself, which proves nothing


class _Reference(msgspec.Struct):
    name: str
    uid: str = ""


class _Kubernetes(msgspec.Struct):
    namespace: str
    pod: _Reference
    serviceaccount: _Reference


class _Claims(msgspec.Struct):
    exp: float
    kubernetes: _Kubernetes = msgspec.field(name="kubernetes.io")
    aud: list[str] | str = ""

    @property
    def audiences(self) -> list[str]:
        return [self.aud] if isinstance(self.aud, str) else self.aud

    @property
    def pod(self) -> PodIdentity:
        kubernetes = self.kubernetes
        pod, account = kubernetes.pod, kubernetes.serviceaccount
        return PodIdentity(kubernetes.namespace, pod.name, pod.uid, account.name)


def _read_claims(token: str) -> _Claims | None:
    """Read the claims of a JWT that was issued to a pod, unverified; None where it is none."""
    parts = token.split(".") if len(token) <= _LONGEST_TOKEN else ()
    if len(parts) != 3 or not token.isascii():
        return None
    try:
        body = base64.b64decode(parts[1] + "=" * (-len(parts[1]) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(body, type=_Claims)
    except (binascii.Error, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
