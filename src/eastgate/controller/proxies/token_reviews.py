"""Identifies pods by their service-account tokens, which the API server reviews.

A token counts only if it is for the audience of the control plane and was issued to a pod. The pod then determines the
proxy; the claims of the proxy do not. A token whose own claims rule this out is refused without a review. In any case,
only the answer of the API server admits a proxy.

Answers are cached for a short time, under a hash of the token and never past its expiry. So a thousand proxies that
reconnect after a restart need one review each. While the API server is unreachable, new streams are refused, and open
streams stay.
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

# Authenticates the proxies of pods: one of several proofs identifies the pod, and the pod identifies the proxy.


class PodProof(Protocol):
    """A way to prove the pod of a proxy."""

    def may_prove(self, credentials: ProxyCredentials) -> bool:
        """Return whether these credentials may be of this kind, without much work."""
        ...

    async def prove(self, credentials: ProxyCredentials) -> PodIdentity:
        """Return the pod that these credentials were issued to. Raises AuthenticationError."""
        ...


class PodAuthenticator:
    """The authenticator of proxies in the cluster. `world` returns the current pods.

    The first proof that may apply to the credentials decides.
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
            raise AuthenticationError("the proxy must send credentials of a pod")
        proven = await proof.prove(credentials)
        proxy = identify(self._world(), proven, node_id)  # with the state of the world after the answer
        self._admitted[proxy.name] = proven
        return proxy

    def on_revoke(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call `callback` with each proxy whose pod is gone, until the returned function is called."""
        self._on_revoke.append(callback)
        return lambda: self._on_revoke.remove(callback)

    def revoke_missing(self) -> frozenset[str]:
        """Disconnect the admitted proxies that would not be admitted now; return them.

        Call it after changes of pods, their owners or Gateways.
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


# Identifies pods by the SVID of their proxies, for proxies without a token.
#
# An SVID proves an account and not a pod. So the source address of the proxy counts too: the pod with this address must
# run as the account. A process that can send from the address of another pod of the same account would get the
# resources of that pod: a certificate of the same account, and the policies at that pod.


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
            raise AuthenticationError("the certificate is not an SVID") from None
        pod = self._world().by_ip(_usual_address(credentials.address))
        if pod is None or not pod.is_pod or pod.derived:
            raise AuthenticationError("the source address of the proxy belongs to no pod")
        if pod.identity_in(self._settings.trust_domain) != identity:
            raise AuthenticationError(f"{pod.key} does not run as the account of the certificate")
        return PodIdentity(pod.namespace, pod.name, pod.uid, pod.service_account)


def _usual_address(address: str) -> str:
    """Return an address in the spelling of the world, or an empty string for an invalid one."""
    try:
        return str(parse_address(address))
    except ValueError:
        return ""


AUDIENCE: Final = "eastgate"
TOKEN_REVIEW: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
_POD_NAME: Final = "authentication.kubernetes.io/pod-name"
_POD_UID: Final = "authentication.kubernetes.io/pod-uid"
_ACCOUNT: Final = "system:serviceaccount:"
_MAX_TOKEN_CHARS: Final = 16 * 1024
_CACHE_SECONDS: Final = 60.0
_REFUSAL_CACHE_SECONDS: Final = 5.0
_MAX_CACHED_ANSWERS: Final = 10_000
_MAX_CONCURRENT_REVIEWS: Final = 32


class ReviewApi(Protocol):
    """The API server call that is needed: that of `eastgate.reading.kubernetes.Connection`."""

    async def create(self, resource: Resource, obj: Mapping[str, Any]) -> JsonObject:
        """Create a review, and return it with its status."""
        ...


@dataclass(frozen=True, slots=True)
class _Answer:
    pod: PodIdentity | None
    refusal: str
    until: float


class TokenReviews:
    """Proofs by tokens. `world` returns the current pods.

    `clock` returns the time in seconds since 1970.
    """

    def __init__(self, api: ReviewApi, world: Callable[[], World], clock: Callable[[], float] = time.time) -> None:
        self._api = api
        self._world = world
        self._clock = clock
        self._answers: dict[bytes, _Answer] = {}
        self._asking = asyncio.Semaphore(_MAX_CONCURRENT_REVIEWS)

    def may_prove(self, credentials: ProxyCredentials) -> bool:
        """Return whether the claims of a token name a pod, this audience, and a later expiry."""
        return self._claims(credentials) is not None

    async def prove(self, credentials: ProxyCredentials) -> PodIdentity:
        """Return the pod of a token. Raises AuthenticationError."""
        claims = self._claims(credentials)
        if claims is None:
            raise AuthenticationError("the proxy must send a token of a pod for this control plane")
        find_pod(self._world(), claims.pod)  # without the pod, no review is needed
        return await self._review(credentials.token, claims)

    def _claims(self, credentials: ProxyCredentials) -> _Claims | None:
        claims = _read_claims(credentials.token)
        current = claims is not None and claims.exp > self._clock() and AUDIENCE in claims.audiences
        return claims if current else None

    async def _review(self, token: str, claims: _Claims) -> PodIdentity:
        """Return the pod of a token, from the cache or by a review. Raises AuthenticationError."""
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
            return _Answer(read_review(answer), "", min(now + _CACHE_SECONDS, claims.exp))
        except AuthenticationError as error:
            return _Answer(None, str(error), now + _REFUSAL_CACHE_SECONDS)

    def _keep(self, key: bytes, answer: _Answer) -> None:
        if len(self._answers) >= _MAX_CACHED_ANSWERS:
            now = self._clock()
            self._answers = {kept: each for kept, each in self._answers.items() if each.until > now}
        if len(self._answers) >= _MAX_CACHED_ANSWERS:
            self._answers.clear()
        self._answers[key] = answer


def read_review(review: Mapping[str, Any]) -> PodIdentity:
    """Return the pod that an answered TokenReview proves. Raises AuthenticationError if it proves none."""
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


# The claims of a token, which prove nothing


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
    """Read the claims of a JWT that was issued to a pod, unverified, or return None."""
    parts = token.split(".") if len(token) <= _MAX_TOKEN_CHARS else ()
    if len(parts) != 3 or not token.isascii():
        return None
    try:
        body = base64.b64decode(parts[1] + "=" * (-len(parts[1]) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(body, type=_Claims)
    except (binascii.Error, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
