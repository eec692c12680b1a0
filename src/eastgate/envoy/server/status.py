"""Records the resources that a proxy runs, if they can be known: accepted and rejected ones, and the policies at fault.

Seen with Envoy 1.40, and the reason for `Ledger.doubt`: Envoy may apply a part of a rejected response. If it cannot
build one of two listeners, it applies the other. If one of them is invalid, it applies neither. Removals in the same
response may or may not be applied. Of two extension configs, it applies those before the bad one. Yet after a
reconnect, Envoy claims for all of them the version from before. So after a rejection, no claim about that response's
resources is trusted until they were accepted in a response of their own.

And the reason for `must_respell`: Envoy accepts a rejected secret or extension config when it is sent a second time,
but does not apply it. This holds even under another version and on another stream. So these are sent one by one. A
resource that Envoy may have seen before is sent in another spelling (`respelling`), so that its acceptance is a proof.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.envoy.server.resources import CLUSTER, LISTENER, SECRET, VALIDATED_ONCE, ResourceKey, XdsResource
from eastgate.envoy.server.store import Store

ABSENT: Final = ""  # the version of a missing resource
UNSURE: Final = "?"  # the version of a resource that may or may not have been applied

_MAX_MESSAGE_CHARS: Final = 2000
# Envoy puts the whole rejected resource before the error message; that may be a Secret.
_DUMP: Final = regex(r"\A.*(?=Proto constraint validation failed)", re.DOTALL)
_PEM: Final = regex(r"-----BEGIN.*?(?:-----END[^-]*-----|\Z)", re.DOTALL)
_NAMING: Final = {
    CLUSTER: "Error adding/updating cluster(s) ",
    LISTENER: "Error adding/updating listener(s) ",
}


class ResourceState(enum.StrEnum):
    """The state of a resource at a proxy."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    WAITING = "waiting"  # not sent, not answered, or not asked for


@dataclass(frozen=True, slots=True)
class ResourceRejection:
    """A version that a proxy has rejected. For a removal, the version is `ABSENT`."""

    version: str
    message: str
    policies: frozenset[str]
    at: datetime


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """One resource of one proxy: the wanted version, the last accepted one, and a rejection since."""

    type_url: str
    name: str
    wanted: str | None
    accepted: str | None
    rejection: ResourceRejection | None

    @property
    def state(self) -> ResourceState:
        """Return whether the wanted version was accepted, was rejected or is waiting."""
        wanted = self.wanted or ABSENT
        if self.rejection is not None and self.rejection.version == wanted:
            return ResourceState.REJECTED
        return ResourceState.ACCEPTED if (self.accepted or ABSENT) == wanted else ResourceState.WAITING


@dataclass(frozen=True, slots=True)
class ProxyStatus:
    """One proxy at one moment. `connected_since` is None while it is not connected."""

    node: str
    connected_since: datetime | None
    settled: bool
    resources: tuple[ResourceStatus, ...]

    @property
    def rejected(self) -> tuple[ResourceStatus, ...]:
        """Return the resources whose wanted version this proxy has rejected."""
        return tuple(status for status in self.resources if status.state is ResourceState.REJECTED)


@dataclass(frozen=True, slots=True)
class _Accepted:
    version: str
    policies: frozenset[str] = frozenset()


class Ledger:
    """The record of one proxy. It outlives the proxy's streams."""

    def __init__(self, node: str, resources_of: str | None = None) -> None:
        self.node = node
        self.resources_of = node if resources_of is None else resources_of
        self.connected_since: datetime | None = None
        self.rejections: dict[ResourceKey, ResourceRejection] = {}
        self._accepted: dict[ResourceKey, _Accepted] = {}
        self._unsure: dict[ResourceKey, str] = {}  # and the version that the proxy claims if it was applied
        self._seen: set[ResourceKey] = set()  # the proxy may have got the wanted version before
        self._foreign: set[str] = set()  # types of which another control plane may have sent anything before
        self._validated: set[ResourceKey] = set()  # of those, resources that the proxy has answered for since

    def accept(self, key: ResourceKey, resource: XdsResource | None) -> None:
        """Record that a proxy has acknowledged this resource, or its removal."""
        self.drop(key)
        if resource is not None:
            self._accepted[key] = _Accepted(resource.version, resource.policies)
        elif key[0] == SECRET:
            self.mark_seen(key)  # Envoy keeps a removed secret, and compares the next one with it

    def reject(self, key: ResourceKey, resource: XdsResource | None, message: str) -> ResourceRejection:
        """Record that a proxy has rejected this resource, sent alone."""
        policies = resource.policies if resource is not None else frozenset()
        accepted = self._accepted.get(key)
        if accepted is not None:  # the earlier policies are not at fault, if there are others
            policies = policies - accepted.policies or policies
        version = resource.version if resource is not None else ABSENT
        self._mark_validated(key)
        rejection = self.rejections[key] = ResourceRejection(version, _sanitize(message), policies, datetime.now(UTC))
        return rejection

    def accepted_types(self) -> frozenset[str]:
        """Return the types with a resource that the proxy has accepted."""
        return frozenset(type_url for type_url, _ in self._accepted)

    def drop(self, key: ResourceKey) -> None:
        """Forget a resource that the proxy neither has nor asks for any more."""
        self._accepted.pop(key, None)
        self.rejections.pop(key, None)
        self._unsure.pop(key, None)
        self._mark_validated(key)

    def _mark_validated(self, key: ResourceKey) -> None:
        """Note that the last version that the proxy has seen is known."""
        self._seen.discard(key)
        if key[0] in self._foreign:
            self._validated.add(key)

    def reconsider(self, key: ResourceKey) -> None:
        """Forget a rejection, so that the resource is sent again."""
        if self.rejections.pop(key, None) is not None:
            self.mark_seen(key)

    def mark_seen(self, key: ResourceKey) -> None:
        """Note that the proxy may have got this resource before, and would accept it without validation."""
        if key[0] in VALIDATED_ONCE:
            self._seen.add(key)

    def must_respell(self, key: ResourceKey) -> bool:
        """Return whether the resource must be sent in a spelling that the proxy has not seen."""
        return key in self._seen or (key[0] in self._foreign and key not in self._validated)

    def keep_only(self, type_url: str, asked: Callable[[str], bool]) -> None:
        """Forget the resources of this type that the proxy does not ask for."""
        keys = self._accepted.keys() | self.rejections.keys() | self._unsure.keys() | self._seen
        for key in keys:
            if key[0] == type_url and not asked(key[1]):
                self.drop(key)

    def doubt(self, key: ResourceKey, believed: str = ABSENT) -> None:
        """Note that it is unknown which version the proxy has, unless it claims to have `believed`."""
        self._unsure[key] = believed

    def resume(
        self, type_url: str, claims: Mapping[str, str], wanted: Mapping[str, XdsResource], same_process: bool
    ) -> dict[str, str]:
        """Record the versions that a proxy claims after it connected; return the claims to trust."""
        believed = dict(claims)
        for key, version in self._unsure.items():
            if key[0] == type_url and (not version or claims.get(key[1]) != version):
                believed[key[1]] = UNSURE
        for key in [key for key in self._accepted if key[0] == type_url and key[1] not in claims]:
            del self._accepted[key]
        if not same_process:  # another version of Envoy may accept a version that the old one rejected
            for key in [key for key in self.rejections if key[0] == type_url]:
                self.reconsider(key)
            self._foreign.discard(type_url)
        elif type_url in VALIDATED_ONCE:  # since its last stream here, it may have been connected to another replica
            self._suspect_other_senders(type_url)
        for name, version in claims.items():
            self._record_claim((type_url, name), version, wanted.get(name))
        return believed

    def _suspect_other_senders(self, type_url: str) -> None:
        """Note that another control plane may have sent the proxy any resource of this type."""
        self._foreign.add(type_url)
        self._validated = {key for key in self._validated if key[0] != type_url}

    def distrust(self, type_url: str) -> None:
        """Forget the proxy's answers for a type: it may have accepted resources that another control plane sent."""
        for key in self._accepted.keys() | self.rejections.keys() | self._unsure.keys():
            if key[0] == type_url:
                self.drop(key)
        self._suspect_other_senders(type_url)

    def on_disconnected(self) -> None:
        """Record that the proxy's stream has ended."""
        self.connected_since = None

    def _record_claim(self, key: ResourceKey, version: str, wanted: XdsResource | None) -> None:
        accepted = self._accepted.get(key)
        if accepted is None or accepted.version != version:
            same = wanted is not None and wanted.version == version
            self._accepted[key] = _Accepted(version, wanted.policies if wanted is not None and same else frozenset())

    def rejected_version(self, key: ResourceKey) -> str | None:
        """Return the version that must not be sent again."""
        rejection = self.rejections.get(key)
        return rejection.version if rejection is not None else None

    def snapshot(self, store: Store, settled: bool) -> ProxyStatus:
        wanted = {resource.key: resource.version for resource in store.resources(self.resources_of)}
        resources = tuple(
            self._status(key, wanted.get(key))
            for key in sorted(wanted.keys() | self._accepted.keys() | self.rejections.keys())
        )
        return ProxyStatus(self.node, self.connected_since, settled, resources)

    def summary(self, store: Store, settled: bool) -> ProxyStatus:
        """Return a snapshot with only the rejected resources."""
        wanted = ((key, store.of_type(self.resources_of, key[0]).get(key[1])) for key in sorted(self.rejections))
        statuses = (self._status(key, resource.version if resource is not None else None) for key, resource in wanted)
        rejected = tuple(status for status in statuses if status.state is ResourceState.REJECTED)
        return ProxyStatus(self.node, self.connected_since, settled, rejected)

    def lacking(self, store: Store) -> frozenset[str]:
        """Return the policies in wanted resources that are missing in the accepted resources of the same names."""
        policies: set[str] = set()
        for resource in store.resources(self.resources_of):
            accepted = self._accepted.get(resource.key)
            if accepted is None or accepted.version != resource.version:
                policies |= resource.policies - (accepted.policies if accepted is not None else frozenset())
        return frozenset(policies)

    def _status(self, key: ResourceKey, wanted: str | None) -> ResourceStatus:
        accepted = self._accepted.get(key)
        version = accepted.version if accepted is not None else None
        return ResourceStatus(*key, wanted, version, self.rejections.get(key))


def find_suspects(type_url: str, message: str, names: frozenset[str]) -> frozenset[str]:
    """Return the names that a proxy's message seems to blame. A hint only: the message may quote any text."""
    prefix = _NAMING.get(type_url, "")
    if prefix and message.startswith(prefix):
        return names & {line.partition(": ")[0] for line in message.removeprefix(prefix).splitlines()}
    return frozenset(name for name in names if f'name: "{name}"\n' in message)


def _sanitize(message: str) -> str:
    """Return a message without the quoted resource, and without any text that looks like a key."""
    return _PEM.sub("…", _DUMP.sub("", message)).strip()[:_MAX_MESSAGE_CHARS]


def combine(node: str, statuses: Sequence[ProxyStatus]) -> ProxyStatus | None:
    """Return the status of a node with several proxies: for each resource, the status furthest from being in force."""
    if not statuses:
        return None
    worst: dict[tuple[str, str], ResourceStatus] = {}
    for resource in (resource for status in statuses for resource in status.resources):
        key = resource.type_url, resource.name
        if key not in worst or _distance(resource) > _distance(worst[key]):
            worst[key] = resource
    return ProxyStatus(
        node,
        min((status.connected_since for status in statuses if status.connected_since is not None), default=None),
        all(status.settled for status in statuses),
        tuple(worst[key] for key in sorted(worst)),
    )


def _distance(resource: ResourceStatus) -> int:
    """Return the number of steps until a resource is in force."""
    return (ResourceState.ACCEPTED, ResourceState.WAITING, ResourceState.REJECTED).index(resource.state)
