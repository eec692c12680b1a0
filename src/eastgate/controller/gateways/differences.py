"""What has to be written so that the objects of a Gateway are as they must be.

An object is as it must be if it has every field that we want with the value that we want. What others add to it is
theirs; what they change in our fields is put back. An annotation with a digest shows that we want fewer fields than
when it was written last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from eastgate.basics.records import dataclass

ObjectKey = tuple[str, str, str]
"""The kind, the namespace and the name of an object."""

# The fields that tell the items of a list apart, for lists that several may write to; all others are one value.
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "env": ("name",),
    "ownerReferences": ("uid",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
_PORT_KEYS: Final = (("containerPort", "protocol"), ("port", "protocol"))
_QUANTITIES: Final = ("limits", "requests")
_UNITS: Final = {
    "m": Decimal("0.001"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate(("k", "M", "G", "T"), 1)},
    **{unit: Decimal(1024) ** power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti"), 1)},
}


@dataclass(frozen=True, slots=True)
class ObjectChanges:
    """What is to be written for a Gateway.

    `foreign` are objects that have a name of ours and belong to somebody else: nothing is written to them.
    """

    create: tuple[dict[str, Any], ...] = ()
    update: tuple[dict[str, Any], ...] = ()
    delete: tuple[Mapping[str, Any], ...] = ()
    foreign: tuple[ObjectKey, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.create or self.update or self.delete)


def compare_objects(
    wanted: Sequence[Mapping[str, Any]], existing: Sequence[Mapping[str, Any]], owner: str
) -> ObjectChanges:
    """Return what makes the existing objects those that are wanted. `owner` is the UID of the Gateway.

    Where the account belongs to somebody else, the Deployment is left alone and none is made: its pods would have what
    that account has.
    """
    found = {key_of(entry): entry for entry in existing}
    keys = {key_of(entry) for entry in wanted}
    foreign = tuple(key for key in sorted(keys & found.keys()) if not is_owned(found[key], owner))
    if any(kind == "ServiceAccount" for kind, _, _ in foreign):
        wanted = [entry for entry in wanted if entry["kind"] != "Deployment"]
    create, update = [], []
    for entry in wanted:
        key = key_of(entry)
        current = found.get(key)
        if current is None:
            create.append(dict(entry))
        elif key not in foreign and not is_fulfilled(entry, current):
            metadata = {**entry["metadata"], "uid": current["metadata"]["uid"]}
            update.append({**entry, "metadata": metadata})
    delete = tuple(
        entry for key, entry in found.items() if key not in keys and is_owned(entry, owner) and not _is_leaving(entry)
    )
    return ObjectChanges(tuple(create), tuple(update), delete, foreign)


def key_of(obj: Mapping[str, Any]) -> ObjectKey:
    """Return the key of an object."""
    return str(obj["kind"]), str(obj["metadata"].get("namespace") or ""), str(obj["metadata"]["name"])


def is_owned(obj: Mapping[str, Any], owner: str) -> bool:
    """Tell whether an object belongs to a Gateway, by its UID."""
    references = obj["metadata"].get("ownerReferences") or ()
    return any(reference.get("uid") == owner and reference.get("controller") for reference in references)


def _is_leaving(obj: Mapping[str, Any]) -> bool:
    return obj["metadata"].get("deletionTimestamp") is not None


def is_fulfilled(wanted: Any, current: Any, field: str = "") -> bool:
    """Tell whether a value has all that is wanted of it."""
    if isinstance(wanted, Mapping):
        return isinstance(current, Mapping) and all(
            key in current and is_fulfilled(value, current[key], field if field in _QUANTITIES else key)
            for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(current, list) and _is_list_fulfilled(wanted, current, field)
    if field in _QUANTITIES:
        return _amount(wanted) == _amount(current)
    return bool(wanted == current)


def _is_list_fulfilled(wanted: list[Any], current: list[Any], field: str) -> bool:
    keys = _keys(wanted, field)
    if keys is None:
        return len(wanted) == len(current) and all(map(is_fulfilled, wanted, current))
    found = {tuple(item.get(key) for key in keys): item for item in current if isinstance(item, Mapping)}
    return all(is_fulfilled(item, found.get(tuple(item.get(key) for key in keys))) for item in wanted)


def _keys(items: list[Any], field: str) -> tuple[str, ...] | None:
    if field == "ports" and items:
        return next((keys for keys in _PORT_KEYS if keys[0] in items[0]), None)
    return _KEYS.get(field)


def _amount(quantity: object) -> object:
    """Return the number that a quantity is: the API server writes 1000m as 1."""
    text = str(quantity)
    unit = text.lstrip("0123456789.")
    if unit and unit not in _UNITS:
        return text
    try:
        return Decimal(text.removesuffix(unit)) * _UNITS.get(unit, Decimal(1))
    except InvalidOperation:
        return text
