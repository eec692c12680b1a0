"""Writes the objects of Gateways, and the status of Gateways and routes.

Other modules compute everything that is written, from data. A correct object is not written again. After a conflict
with another writer, the object waits for the next reconciliation, which sees the other change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import Any, Final

from eastgate.basics.records import dataclass
from eastgate.cluster import World
from eastgate.controller.conditions import timestamp
from eastgate.controller.gateways.listeners import LISTENER_CONDITIONS, listener_standings
from eastgate.controller.gateways.objects import (
    OBJECT_RESOURCES,
    AddressError,
    ObjectChanges,
    ObjectKey,
    compare_objects,
    gateway_objects,
    is_owned,
    key_of,
)
from eastgate.controller.gateways.parameters import (
    GatewayParameters,
    ParameterError,
    read_parameters,
    referenced_config_maps,
)
from eastgate.controller.gateways.pods import CONTROLLER_NAME, GATEWAY_LABEL, MANAGER, STATUS_MANAGER, ProxySetup
from eastgate.controller.gateways.routes import GatewayStanding, route_parents
from eastgate.controller.gateways.status import (
    GATEWAY_CONDITIONS,
    GatewayFacts,
    GatewayProgress,
    class_status,
    gateway_status,
)
from eastgate.reading.kubernetes import ApiError, Connection, JsonObject, Resource

_CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
_RESOURCES: Final = {resource.kind: resource for resource in OBJECT_RESOURCES}


@dataclass(frozen=True, slots=True)
class GatewayView:
    """The state of a cluster: classes, Gateways and routes as the API server has them, and the world made from them.

    `progress` is the progress of proxies, by `namespace/name` of their Gateway. `unreadable` is why an object is not in
    the world.
    """

    world: World
    classes: Sequence[JsonObject] = ()
    gateways: Sequence[JsonObject] = ()
    routes: Sequence[JsonObject] = ()
    progress: Mapping[str, GatewayProgress] = field(default_factory=dict, hash=False)
    unreadable: Mapping[ObjectKey, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    """The result of a reconciliation. `conflicting` are objects with a conflicting write; `errors` are messages."""

    written: tuple[ObjectKey, ...] = ()
    conflicting: tuple[ObjectKey, ...] = ()
    errors: Mapping[ObjectKey, str] = field(default_factory=dict, hash=False)


class GatewayReconciler:
    """The reconciler of all Gateways of Eastgate's classes. One replica of the controller runs it at a time."""

    def __init__(
        self,
        connection: Connection,
        setup: ProxySetup,
        defaults: GatewayParameters,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._connection = connection
        self._setup = setup
        self._defaults = defaults
        self._now = now

    async def reconcile(self, view: GatewayView) -> ReconcileResult:
        """Write all changes. Raises UnreachableError, and ApiError if objects cannot be listed."""
        return await _Reconciliation(self._connection, self._setup, self._defaults, timestamp(self._now()), view).run()


class _Reconciliation:
    """One reconciliation of all Gateways and routes."""

    def __init__(
        self, connection: Connection, setup: ProxySetup, defaults: GatewayParameters, now: str, view: GatewayView
    ) -> None:
        self._connection = connection
        self._setup = setup
        self._defaults = defaults
        self._now = now
        self._view = view
        self._written: list[ObjectKey] = []
        self._conflicting: list[ObjectKey] = []
        self._errors: dict[ObjectKey, str] = {}

    async def run(self) -> ReconcileResult:
        classes = {
            entry["metadata"]["name"]: entry
            for entry in self._view.classes
            if entry["spec"].get("controllerName") == CONTROLLER_NAME
        }
        ours = [gateway for gateway in self._view.gateways if gateway["spec"].get("gatewayClassName") in classes]
        config_maps = await self._config_maps(classes, ours)
        for gateway_class in classes.values():
            await self._write_class(gateway_class, config_maps)
        existing = await self._existing()
        await self._delete_foreign(existing)
        standings = {}
        for gateway in ours:
            standing = self._standing(gateway)
            standings[_name(gateway)] = standing
            gateway_class = classes[gateway["spec"]["gatewayClassName"]]
            try:
                await self._reconcile_gateway(gateway, gateway_class, standing, existing, config_maps)
            except ApiError as error:  # a failed Gateway must not stop the others
                self._errors[key_of(gateway)] = error.message
        for route in self._view.routes:
            await self._write_route(route, standings)
        return ReconcileResult(tuple(self._written), tuple(self._conflicting), self._errors)

    # Reading

    def _standing(self, gateway: JsonObject) -> GatewayStanding:
        world = self._view.world
        declared = world.gateways.get(_name(gateway))
        return GatewayStanding(declared, listener_standings(world, declared) if declared is not None else ())

    async def _config_maps(
        self, classes: Mapping[str, JsonObject], gateways: Iterable[JsonObject]
    ) -> dict[str, Mapping[str, str]]:
        """Return the data of the ConfigMaps with parameters."""
        keys = {key for entry in classes.values() for key in referenced_config_maps(entry, None)}
        keys |= {key for gateway in gateways for key in referenced_config_maps({}, gateway)}
        config_maps: dict[str, Mapping[str, str]] = {}
        for key in sorted(keys):
            namespace, _, name = key.partition("/")
            try:
                read = await self._get(_CONFIG_MAPS, name, namespace)
            except ApiError as error:
                self._errors["ConfigMap", namespace, name] = error.message
                continue
            if read is not None:
                config_maps[key] = read.get("data") or {}
        return config_maps

    async def _existing(self) -> dict[ObjectKey, JsonObject]:
        """Return all objects that belong to Gateways."""
        existing: dict[ObjectKey, JsonObject] = {}
        for resource in OBJECT_RESOURCES:
            items, _ = await self._connection.list(resource, label_selector=GATEWAY_LABEL)
            existing.update((key_of(item), item) for item in items)
        return existing

    async def _get(self, resource: Resource, name: str, namespace: str) -> JsonObject | None:
        try:
            return await self._connection.get(resource, name, namespace)
        except ApiError as error:
            if error.is_missing:
                return None
            raise

    # Objects

    async def _delete_foreign(self, existing: Mapping[ObjectKey, JsonObject]) -> None:
        """Delete the objects of Gateways that now belong to another controller.

        Kubernetes deletes the objects of deleted Gateways. A Gateway without its class belongs to no controller yet.
        """
        foreign = {
            entry["metadata"]["name"]
            for entry in self._view.classes
            if entry["spec"].get("controllerName") != CONTROLLER_NAME
        }
        others = [
            gateway["metadata"]["uid"]
            for gateway in self._view.gateways
            if gateway["spec"].get("gatewayClassName") in foreign
        ]
        for entry in existing.values():
            if any(is_owned(entry, uid) for uid in others):
                await self._delete(entry)

    async def _reconcile_gateway(
        self,
        gateway: JsonObject,
        gateway_class: JsonObject,
        standing: GatewayStanding,
        existing: Mapping[ObjectKey, JsonObject],
        config_maps: Mapping[str, Mapping[str, str]],
    ) -> None:
        if gateway["metadata"].get("deletionTimestamp") is not None:
            return
        key = key_of(gateway)
        problem: str | None = None
        foreign: tuple[ObjectKey, ...] = ()
        owned = {name: entry for name, entry in existing.items() if is_owned(entry, gateway["metadata"]["uid"])}
        try:
            parameters = read_parameters(gateway_class, gateway, config_maps, self._defaults)
            ports = {entry.listener.port for entry in standing.listeners if entry.is_open}
            wanted = gateway_objects(gateway, ports, self._setup, parameters)
        except ParameterError as error:
            problem = str(error)
        except AddressError:
            pass  # the status reports it, and existing objects stay
        else:
            if standing.gateway is not None:
                foreign = await self._apply(gateway, wanted, owned)
        service = next((entry for (kind, _, _), entry in owned.items() if kind == "Service"), None)
        progress = self._view.progress.get(_name(gateway))
        facts = GatewayFacts(problem, self._view.unreadable.get(key), service, foreign)
        if progress is not None:
            facts = GatewayFacts(problem, facts.unreadable, service, foreign, progress)
        await self._write_gateway(gateway, gateway_status(gateway, standing, facts, self._now))

    async def _apply(
        self, gateway: JsonObject, wanted: Sequence[JsonObject], owned: dict[ObjectKey, JsonObject]
    ) -> tuple[ObjectKey, ...]:
        """Write the changes, and return the objects of other owners. `owned` is updated."""
        current = dict(owned)
        for entry in wanted:
            key = key_of(entry)
            if key not in current:
                found = await self._get(_RESOURCES[entry["kind"]], entry["metadata"]["name"], key[1])
                if found is not None:
                    current[key] = {**found, "kind": entry["kind"]}
        changes = compare_objects(wanted, list(current.values()), gateway["metadata"]["uid"])
        foreign = [*changes.foreign, *await self._create(changes.create, owned)]
        await self._update(changes, owned)
        return tuple(foreign)

    async def _create(self, wanted: Iterable[JsonObject], owned: dict[ObjectKey, JsonObject]) -> list[ObjectKey]:
        """Create objects, and return those that another writer created at the same time."""
        foreign: list[ObjectKey] = []
        for entry in wanted:
            key, resource = key_of(entry), _RESOURCES[entry["kind"]]
            if entry["kind"] == "ServiceAccount":
                created = await self._create_account(key, entry)
            else:
                # Without force, fields of a concurrent writer stay.
                created = await self._try(key, self._connection.apply(resource, entry, manager=MANAGER, force=False))
            if created is not None and not _has_other_managers(created):
                owned[key] = created
                continue
            if created is not None:
                await self._release(entry)
            if created is not None or key in self._conflicting:
                foreign.append(key)
            if entry["kind"] == "ServiceAccount":
                break  # no pods without an account of their own
        return foreign

    async def _create_account(self, key: ObjectKey, account: JsonObject) -> JsonObject | None:
        """Create an account, and then apply it. Applying alone would not reveal a concurrent creator of an account
        without fields.
        """
        metadata = {name: account["metadata"][name] for name in ("name", "namespace", "ownerReferences")}
        bare = {"apiVersion": account["apiVersion"], "kind": account["kind"], "metadata": metadata}
        resource = _RESOURCES[account["kind"]]
        created = await self._try(key, self._connection.create(resource, bare, manager=MANAGER))
        if created is None:
            return None
        whole = {**account, "metadata": {**account["metadata"], "uid": created["metadata"]["uid"]}}
        return await self._try(key, self._connection.apply(resource, whole, manager=MANAGER))

    async def _update(self, changes: ObjectChanges, owned: dict[ObjectKey, JsonObject]) -> None:
        for entry in changes.update:
            key = key_of(entry)
            updated = await self._try(key, self._connection.apply(_RESOURCES[entry["kind"]], entry, manager=MANAGER))
            if updated is not None:
                owned[key] = updated
        for gone in changes.delete:
            await self._delete(gone)
            owned.pop(key_of(gone), None)

    async def _release(self, obj: JsonObject) -> None:
        """Remove the applied fields from an object that another writer created at the same time."""
        metadata = {key: obj["metadata"][key] for key in ("name", "namespace")}
        nothing = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
        await self._try(key_of(obj), self._connection.apply(_RESOURCES[obj["kind"]], nothing, manager=MANAGER))

    async def _delete(self, obj: Mapping[str, Any]) -> None:
        metadata = obj["metadata"]
        deletion = self._connection.delete(
            _RESOURCES[obj["kind"]], metadata["name"], metadata["namespace"], uid=metadata["uid"]
        )
        await self._try(key_of(obj), deletion)

    # Status

    async def _write_class(self, gateway_class: JsonObject, config_maps: Mapping[str, Mapping[str, str]]) -> None:
        problem = None
        try:
            read_parameters(gateway_class, None, config_maps, self._defaults)
        except ParameterError as error:
            problem = str(error)
        status = class_status(gateway_class, problem, self._now)
        conditions = [entry for entry in status["conditions"] if entry["type"] == "Accepted"]
        await self._write_status(gateway_class, status, {"conditions": conditions})

    async def _write_gateway(self, gateway: JsonObject, status: JsonObject) -> None:
        own = {
            "conditions": [entry for entry in status["conditions"] if entry["type"] in GATEWAY_CONDITIONS],
            "listeners": [
                {**entry, "conditions": [each for each in entry["conditions"] if each["type"] in LISTENER_CONDITIONS]}
                for entry in status.get("listeners") or ()
            ],
            "addresses": status.get("addresses") or [],
        }
        await self._write_status(gateway, status, own)

    async def _write_route(self, route: JsonObject, standings: Mapping[str, GatewayStanding]) -> None:
        before = (route.get("status") or {}).get("parents") or []
        unreadable = self._view.unreadable.get(key_of(route))
        parents = route_parents(route, standings, self._view.world, self._now, unreadable)
        if parents != before:
            await self._write_status(route, {"parents": parents}, {"parents": parents})

    async def _write_status(self, obj: JsonObject, status: JsonObject, own: JsonObject) -> None:
        """Write the status of an object if it differs. `own` are the fields that Eastgate manages."""
        if status == (obj.get("status") or {}):
            return
        metadata = {
            key: obj["metadata"][key] for key in ("name", "namespace", "resourceVersion") if key in obj["metadata"]
        }
        body = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata, "status": own}
        resource = _resource_of(obj)
        written = await self._try(
            key_of(obj), self._connection.apply(resource, body, manager=STATUS_MANAGER, subresource="status")
        )
        if written is not None and _has_leftovers(written, own):
            # They belong to another manager, and applying does not remove them.
            whole = {key: status.get(key) or [] for key in own}
            change = {"metadata": {"resourceVersion": written["metadata"]["resourceVersion"]}, "status": whole}
            where = (metadata["name"], metadata.get("namespace"))
            patch = self._connection.patch(resource, *where, change, subresource="status", manager=STATUS_MANAGER)
            await self._try(key_of(obj), patch)

    async def _try(self, key: ObjectKey, writing: Any) -> JsonObject | None:
        """Await a write, and record its result."""
        try:
            answer: JsonObject | None = await writing
        except ApiError as error:
            if error.is_conflict or error.is_missing:
                self._conflicting.append(key)
            else:
                self._errors[key] = error.message
            return None
        self._written.append(key)
        return answer


def _name(obj: JsonObject) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _has_other_managers(obj: JsonObject) -> bool:
    return any(entry.get("manager") != MANAGER for entry in obj["metadata"].get("managedFields") or ())


def _has_leftovers(written: JsonObject, own: JsonObject) -> bool:
    """Return whether a Gateway still has listeners or conditions of Eastgate that are no longer wanted."""
    status = written.get("status") or {}
    if written["kind"] != "Gateway":
        return False
    listeners = {entry["name"] for entry in own["listeners"]}
    conditions = {entry["type"] for entry in own["conditions"]}
    unwanted = frozenset(GATEWAY_CONDITIONS) - conditions
    return any(entry["name"] not in listeners for entry in status.get("listeners") or ()) or any(
        entry.get("type") in unwanted for entry in status.get("conditions") or ()
    )


def _resource_of(obj: JsonObject) -> Resource:
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = obj["kind"]
    plural = "gatewayclasses" if kind == "GatewayClass" else f"{kind.lower()}s"
    return Resource(group, version, plural, kind, namespaced=kind != "GatewayClass")
