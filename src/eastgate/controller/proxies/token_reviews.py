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
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, Protocol

import msgspec

from eastgate.basics.records import dataclass
from eastgate.cluster import World
from eastgate.controller.proxies.membership import PodIdentity, find_pod
from eastgate.envoy.server.authentication import AuthenticationError, ProxyCredentials, UnavailableError
from eastgate.reading.kubernetes import ApiError, JsonObject, Resource, UnreachableError

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
