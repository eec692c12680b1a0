"""The CA with which all replicas of a control plane sign. The leader rotates its root in time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Protocol

from eastgate.cluster import World
from eastgate.cluster.proxies import GATEWAY_CLASS
from eastgate.control.identity import TrustBundles
from eastgate.control.identity.ca import CaState, EmbeddedCa, Lifetimes, with_new_intermediate
from eastgate.control.identity.certificates import IdentityError, StoredCaError
from eastgate.control.identity.issuer import IssuerCa, IssuerFiles
from eastgate.control.identity.svid import utc_now
from eastgate.controller.certificates.ca_secret import (
    CA_NAME,
    SECRET_RESOURCE,
    SYSTEM_NAMESPACE,
    Rollover,
    new_secret,
    next_secret,
    read_secret,
)
from eastgate.reading.kubernetes import ApiError, JsonObject, Resource

# The ConfigMaps with the roots by which proxies verify the control plane, one in each namespace with proxies.


_LOG = logging.getLogger(__name__)
CONFIG_MAP_RESOURCE: Final = Resource("", "v1", "configmaps", "ConfigMap")
INJECTION_LABEL: Final = "eastgate.dev/injection"
_KEY: Final = "ca.crt"
_UNWRITTEN: Final = "a namespace without the CA"


def namespaces_with_proxies(world: World, sites: Iterable[str]) -> frozenset[str]:
    """Return the namespaces that need a ConfigMap: those with proxies, and those with injection or a Gateway.

    `sites` are the workloads with a sidecar.
    """
    injected = {name for name, each in world.namespaces.items() if each.labels.get(INJECTION_LABEL) == "enabled"}
    gateways = {gateway.namespace for gateway in world.gateways.values() if gateway.gateway_class == GATEWAY_CLASS}
    return frozenset(injected | gateways | {key.partition("/")[0] for key in sites})


def trust_config_map(namespace: str, bundles: TrustBundles) -> JsonObject:
    """Return the ConfigMap of a namespace."""
    metadata: Mapping[str, object] = {
        "name": CA_NAME,
        "namespace": namespace,
        "labels": {"app.kubernetes.io/managed-by": "eastgate"},
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_KEY: bundles.pem(bundles.own)}}


class ConfigMapApi(Protocol):
    """The calls to the API server that are needed: those of `eastgate.reading.kubernetes.Connection`."""

    async def get(self, resource: Resource, name: str, namespace: str) -> JsonObject: ...

    async def apply(self, resource: Resource, obj: Mapping[str, object]) -> JsonObject: ...


async def write_config_maps(api: ConfigMapApi, namespaces: Iterable[str], bundles: TrustBundles) -> frozenset[str]:
    """Write the roots into these namespaces; return the namespaces that have them.

    A failed write, as in a namespace that is being deleted, does not stop the others.
    """
    knowing = set()
    for namespace in sorted(namespaces):
        try:
            await _write(api, trust_config_map(namespace, bundles))
            knowing.add(namespace)
            over = {"namespace": namespace, "over": _UNWRITTEN}
            _LOG.info("the namespace %s has the CA now", namespace, extra=over)
        except ApiError as error:
            trouble = {"namespace": namespace, "trouble": _UNWRITTEN}
            _LOG.warning("the namespace %s does not get the CA: %s", namespace, error, extra=trouble)
    return frozenset(knowing)


async def _write(api: ConfigMapApi, wanted: JsonObject) -> None:
    try:
        existing = await api.get(CONFIG_MAP_RESOURCE, CA_NAME, wanted["metadata"]["namespace"])
    except ApiError as error:
        if not error.is_missing:
            raise
        existing = {}
    if (existing.get("data") or {}).get(_KEY) != wanted["data"][_KEY]:
        await api.apply(CONFIG_MAP_RESOURCE, wanted)


_UNUSABLE: Final = "the Secret of the CA cannot be used"


class SecretApi(Protocol):
    """The calls to the API server that are needed: those of `eastgate.reading.kubernetes.Connection`."""

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> JsonObject:
        """Return one object. Raises ApiError."""
        ...

    async def create(self, resource: Resource, obj: Mapping[str, Any]) -> JsonObject:
        """Create an object. Raises ApiError."""
        ...

    async def replace(self, resource: Resource, obj: Mapping[str, Any]) -> JsonObject:
        """Replace the object of that resourceVersion. Raises ApiError."""
        ...


class SharedCa:
    """The CA in a Secret. `source` issues SVIDs and trust bundles. Create it with `open`.

    All replicas call `refresh` after a change of the Secret, and periodically. The leader also calls `rotate`.
    """

    def __init__(
        self,
        api: SecretApi,
        secret: JsonObject,
        trust_domain: str,
        lifetimes: Lifetimes,
        rollover: Rollover,
        clock: Callable[[], datetime],
    ) -> None:
        stored = read_secret(secret)
        self._api = api
        self._secret = secret
        self._lifetimes = lifetimes
        self._rollover = rollover
        self._clock = clock
        self.session_key = stored.session_key
        self.source: EmbeddedCa | IssuerCa
        if isinstance(stored.content, CaState):
            own = with_new_intermediate(stored.content, lifetimes, clock())
            self.source = EmbeddedCa(trust_domain, state=own, lifetimes=lifetimes, clock=clock)
        else:
            self.source = IssuerCa(trust_domain, stored.content, lifetimes=lifetimes, clock=clock)

    @classmethod
    async def open(
        cls,
        api: SecretApi,
        trust_domain: str,
        *,
        namespace: str = SYSTEM_NAMESPACE,
        name: str = CA_NAME,
        create: bool = True,
        lifetimes: Lifetimes | None = None,
        rollover: Rollover | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> SharedCa:
        """Read the CA. If there is none and `create` is set, create one, unless another replica does so first.

        Raises ApiError, UnreachableError and StoredCaError. A damaged CA is never replaced, since no peer would trust a
        new one.
        """
        lifetimes = lifetimes or Lifetimes()
        try:
            secret = await api.get(SECRET_RESOURCE, name, namespace)
        except ApiError as error:
            if not error.is_missing or not create:
                raise
            try:
                secret = await api.create(
                    SECRET_RESOURCE, new_secret(trust_domain, namespace, name, lifetimes, clock())
                )
            except ApiError as conflict:
                if not conflict.is_conflict:
                    raise
                secret = await api.get(SECRET_RESOURCE, name, namespace)
        return cls(api, secret, trust_domain, lifetimes, rollover or Rollover(), clock)

    @property
    def ends(self) -> dict[str, datetime]:
        """Return the expiry of each signing certificate, by its role."""
        if isinstance(self.source, IssuerCa):
            return {"issuer": self.source.end}
        return {"root": self.source.state.root.end, "intermediate": self.source.state.intermediate.end}

    async def refresh(self) -> None:
        """Read the Secret again, and use its CA. Raises ApiError and UnreachableError."""
        metadata = self._secret["metadata"]
        self.adopt(await self._api.get(SECRET_RESOURCE, metadata["name"], metadata["namespace"]))

    def adopt(self, secret: JsonObject) -> None:
        """Use the CA of a newer version of the Secret. An unusable version changes nothing."""
        if secret.get("data") == self._secret.get("data"):
            _LOG.info("the Secret of the CA can be used again", extra={"over": _UNUSABLE})
            self._secret = secret  # its resourceVersion may be another
            return
        try:
            self._use(read_secret(secret).content)
        except IdentityError as error:
            _LOG.error("the CA stays as it was: %s", error, extra={"trouble": _UNUSABLE})
            return
        _LOG.info("the Secret of the CA can be used again", extra={"over": _UNUSABLE})
        self._secret = secret

    def _use(self, content: CaState | IssuerFiles) -> None:
        """Use this CA. Raises IdentityError."""
        if isinstance(content, CaState) and isinstance(self.source, EmbeddedCa):
            current, now = self.source.state, self._clock()
            if current.root.certificate == content.root.certificate:
                self.source.adopt(replace(content, intermediate=current.intermediate))
                return
            if content.root.end <= now:
                raise StoredCaError(f"the root in its Secret expired at {content.root.end:%Y-%m-%d %H:%M} UTC")
            self.source.adopt(with_new_intermediate(content, self._lifetimes, now))
        elif isinstance(content, IssuerFiles) and isinstance(self.source, IssuerCa):
            self.source.adopt(content)
        else:
            raise StoredCaError("its Secret now has another kind of CA; restart the controller to use it")

    async def rotate(self) -> bool:
        """Take the next step of a root rotation, if one is due; return whether there was one. Leader only.

        Raises ApiError and UnreachableError. A conflict is not raised: another program changed the Secret, which is
        read again next time.
        """
        await self.refresh()
        due = next_secret(self._secret, self._lifetimes, self._rollover, self._clock())
        if due is None:
            return False
        try:
            self.adopt(await self._api.replace(SECRET_RESOURCE, due))
        except ApiError as error:
            if not error.is_conflict:
                raise
            return False
        return True
