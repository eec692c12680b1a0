"""The state of one stream of one proxy, without the network: requests in, responses out.

Some types have an order. New clusters are sent before the listeners and routes that may name them. A cluster is removed
only after the proxy has accepted listeners and routes that no longer name it. While one of those is rejected, the proxy
runs an older one, and the cluster stays. Endpoints, secrets and extensions never wait: Envoy may acknowledge clusters
only when it has their endpoints, and a policy must not wait for a cluster.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterable
from typing import Any, Final

from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryResponse

from eastgate.basics.records import dataclass
from eastgate.envoy.server.limits import Limits
from eastgate.envoy.server.resources import CLUSTER, LISTENER, ORDER, ROUTE, VALIDATED_ONCE, XdsResource
from eastgate.envoy.server.respelling import Respell, respell
from eastgate.envoy.server.status import ABSENT, Ledger, ResourceRejection
from eastgate.envoy.server.store import Store
from eastgate.envoy.server.subscription import Items, PendingResponse, Subscription

_LOG = logging.getLogger(__name__)
_WILDCARD: Final = (CLUSTER, LISTENER)
_NAME_CLUSTERS: Final = (LISTENER, ROUTE)


class ProtocolError(Exception):
    """A proxy sent something invalid, or too much."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """The ACK or NACK of a response. `accepted` has None for removed resources."""

    type_url: str
    accepted: tuple[tuple[str, XdsResource | None], ...] = ()
    rejected: tuple[tuple[str, ResourceRejection], ...] = ()
    nack: bool = False


class Stream:
    """The state of one delta stream of a proxy. It gets only resources of its node, `resources_of`.

    The node is the proxy itself, unless it shares a node with others.
    """

    def __init__(
        self,
        node: str,
        store: Store,
        ledger: Ledger,
        limits: Limits | None = None,
        resources_of: str | None = None,
        respelled: Respell = respell,
    ) -> None:
        self.node = node
        self.resources_of = node if resources_of is None else resources_of
        self.opened_at = time.monotonic()
        self._store = store
        self._ledger = ledger
        self._respelled = respelled
        self._has_respelled = False
        self._limits = limits or Limits()
        self._types: dict[str, Subscription] = {}
        self._changed: set[str] = set()  # types that may have something to send
        self._nonces = itertools.count(1)
        self._same_process = False  # whether the proxy has shown that it was connected before
        self._asked_before = ledger.accepted_types()  # types that the proxy will ask for again, one after the other
        self._closed = False
        self.settled = False

    def notify_changed(self, types: Iterable[str]) -> None:
        """Note that the store has changed."""
        self._mark_changed(types)
        self.settled = False

    def _mark_changed(self, types: Iterable[str]) -> None:
        self._changed.update(types)
        if not self._changed.isdisjoint(_NAME_CLUSTERS):
            self._changed.add(CLUSTER)  # its removals may have waited for this

    def receive(self, request: Any) -> Acknowledgement | None:
        """Process a request. Raises ProtocolError."""
        if request.HasField("node") and request.node.id not in ("", self.node):
            raise ProtocolError("the node may not change during a stream")
        type_url = request.type_url
        if type_url not in ORDER or self._closed:
            return None
        self.settled = False
        acknowledgement = self._acknowledge(request)
        self._subscribe(request)
        self._mark_changed((type_url,))
        return acknowledgement

    def _subscribe(self, request: Any) -> None:
        type_url = request.type_url
        subscription = self._types.get(type_url)
        if subscription is not None:
            if request.resource_names_subscribe or request.resource_names_unsubscribe:
                self._resubscribe(subscription, request)
            return
        subscription = self._types[type_url] = Subscription(type_url, type_url in _WILDCARD)
        wanted = self._store.of_type(self.resources_of, type_url)
        claims = request.initial_resource_versions
        if claims and not self._same_process:
            self._same_process = True
            self._validate_again(type_url)
        believed = self._ledger.resume(type_url, claims, wanted, self._same_process)
        subscription.subscribe(request.resource_names_subscribe, believed)
        self._ledger.keep_only(type_url, subscription.asks_for)
        self._check_size()

    def _validate_again(self, claimed_type: str) -> None:
        """Send types again that were sent before the proxy claimed a resource: it may not have validated them."""
        for type_url in VALIDATED_ONCE.intersection(self._types) - {claimed_type}:
            subscription = self._types[type_url]
            self._ledger.distrust(type_url)
            subscription.resubscribe(tuple(subscription.names), ())
            self._mark_changed((type_url,))

    def _resubscribe(self, subscription: Subscription, request: Any) -> None:
        type_url = subscription.type_url
        sent = frozenset(subscription.in_flight.items if subscription.in_flight is not None else ())
        for name in subscription.resubscribe(request.resource_names_subscribe, request.resource_names_unsubscribe):
            self._ledger.drop((type_url, name))
        for name in sent.intersection((*request.resource_names_subscribe, *request.resource_names_unsubscribe)):
            self._ledger.mark_seen((type_url, name))
        for name in request.resource_names_subscribe:
            self._ledger.reconsider((type_url, name))
        self._check_size()

    def _check_size(self) -> None:
        if sum(subscription.size for subscription in self._types.values()) > self._limits.subscriptions:
            raise ProtocolError("too many subscriptions")

    def _acknowledge(self, request: Any) -> Acknowledgement | None:
        subscription = self._types.get(request.type_url)
        if subscription is None or subscription.in_flight is None:
            return None
        if subscription.in_flight.nonce != request.response_nonce:
            return None
        if request.HasField("error_detail"):
            return self._reject(subscription, request.error_detail.message)
        type_url = subscription.type_url
        accepted = subscription.accept()
        for name, resource in accepted.items():
            self._ledger.accept((type_url, name), resource)
        return Acknowledgement(type_url, tuple(accepted.items()))

    def _reject(self, subscription: Subscription, message: str) -> Acknowledgement:
        type_url = subscription.type_url
        at_fault, apart = subscription.reject(message)
        for name in (*at_fault, *apart):
            self._ledger.doubt((type_url, name))
        rejections = [
            (name, self._ledger.reject((type_url, name), resource, message)) for name, resource in at_fault.items()
        ]
        return Acknowledgement(type_url, rejected=tuple(rejections), nack=True)

    def next_response(self) -> PendingResponse | None:
        """Return the response to send now, or None."""
        if self._closed or not self._store.has_node(self.resources_of):
            return None
        for type_url in ORDER:
            subscription = self._types.get(type_url)
            if subscription is None or type_url not in self._changed or subscription.in_flight is not None:
                continue
            if type_url in _NAME_CLUSTERS and self._has_waiting_clusters():
                continue
            differences = self._differences(subscription)
            if type_url == CLUSTER and None in differences.values() and self._must_keep_clusters():
                differences = {name: resource for name, resource in differences.items() if resource is not None}
            response = subscription.build_response(str(next(self._nonces)), differences, self._limits.response)
            if response is not None:
                self._respell(response)
                return response
            self._changed.discard(type_url)
        self.settled = self._is_settled()
        return None

    def _respell(self, response: PendingResponse) -> None:
        """Return the resources in new spellings if the proxy may have seen them, and would not validate them."""
        for name, resource in response.items.items():
            if resource is not None and self._ledger.must_respell(resource.key):
                response.items[name] = resource.spelled(self._respelled(resource))
                self._log_respelling()

    def _log_respelling(self) -> None:
        """Log once that the proxy gets new spellings."""
        if not self._has_respelled:
            self._has_respelled = True
            message = "the proxy %s validates its configuration anew: it may have been sent it before"
            _LOG.info(message, self.node, extra={"proxy": self.node})

    def _differences(self, subscription: Subscription) -> Items:
        type_url = subscription.type_url
        wanted = self._store.of_type(self.resources_of, type_url)
        return subscription.differences(wanted, lambda name: self._ledger.rejected_version((type_url, name)))

    def _has_waiting_clusters(self) -> bool:
        """Return whether new clusters wait until the proxy has acknowledged others."""
        clusters = self._types.get(CLUSTER)
        if clusters is None or clusters.in_flight is None:
            return False
        differences = self._differences(clusters)
        return any(resource is not None and not clusters.has(name) for name, resource in differences.items())

    def _must_keep_clusters(self) -> bool:
        """Return whether the proxy may still have a listener or a route that names a cluster to be removed."""
        if LISTENER not in self._types:
            return bool(self._store.of_type(self.resources_of, LISTENER))
        return any(self._differs(type_url) for type_url in _NAME_CLUSTERS if type_url in self._types)

    def _differs(self, type_url: str) -> bool:
        subscription = self._types[type_url]
        if subscription.in_flight is not None or self._differences(subscription):
            return True
        wanted = self._store.of_type(self.resources_of, type_url)
        return any(
            rejection.version == (wanted[name].version if name in wanted else ABSENT)
            for (of_type, name), rejection in self._ledger.rejections.items()
            if of_type == type_url
        )

    def _is_settled(self) -> bool:
        """Return whether the proxy has acknowledged all that it asked for, and has asked for all that it should."""
        if any(subscription.in_flight is not None for subscription in self._types.values()):
            return False
        awaited = {*_WILDCARD, *self._asked_before} if self._same_process else _WILDCARD
        return all(
            type_url in self._types or not self._store.of_type(self.resources_of, type_url) for type_url in awaited
        )

    def close(self) -> None:
        """End the stream. A response in flight may have been applied; the proxy's next claim will show."""
        for type_url, subscription in self._types.items():
            if subscription.in_flight is not None:
                for name, resource in subscription.in_flight.items.items():
                    self._ledger.doubt((type_url, name), resource.version if resource is not None else ABSENT)
        self._types.clear()
        self._closed = True
        self.settled = False


def encode(response: PendingResponse) -> bytes:
    """Encode a response as protobuf."""
    message = DeltaDiscoveryResponse(type_url=response.type_url, nonce=response.nonce)
    for name, resource in response.items.items():
        if resource is None:
            message.removed_resources.append(name)
        else:
            added = message.resources.add(name=name, version=resource.version)
            added.resource.type_url = response.type_url
            added.resource.value = resource.body
    encoded: bytes = message.SerializeToString()
    return encoded
