"""Reading fields out of Kubernetes data that may be anything.

A `Section` is a mapping at some path of a manifest. Each of its methods reads one field, and where
the value is of the wrong type says so once, at its place, and answers as if the field were absent, so
that the rest of the object is still looked at. Absent and null are one thing, as they are to Kubernetes.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from eastgate.diagnostics import Code, Reporter, did_you_mean
from eastgate.world import codes
from eastgate.world.manifest import Manifest

__all__ = ["Section"]

_Path: TypeAlias = tuple[str | int, ...]

_HIGHEST_PORT = 65535


class Section:
    """A mapping in a manifest, and the reporter that hears what is wrong with it."""

    __slots__ = ("_manifest", "_path", "_reporter", "data")

    def __init__(
        self, manifest: Manifest, reporter: Reporter, data: Mapping[str, object] | None = None, path: _Path = ()
    ) -> None:
        self._manifest = manifest
        self._reporter = reporter
        self.data = manifest.data if data is None else data
        self._path = path

    def has(self, key: str) -> bool:
        """Whether a field is given."""
        return self.data.get(key) is not None

    def section(self, key: str, *, help: str | None = None) -> Section:  # noqa: A002
        """A mapping, empty where it is absent."""
        value = self.data.get(key)
        if isinstance(value, dict):
            return Section(self._manifest, self._reporter, value, (*self._path, key))
        if value is not None:
            self._mistyped(value, "a mapping", key, help=help)
        return Section(self._manifest, self._reporter, {}, (*self._path, key))

    def sections(self, key: str) -> Iterator[Section]:
        """The items of a list of mappings."""
        for position, value in enumerate(self._list(key)):
            if isinstance(value, dict):
                yield Section(self._manifest, self._reporter, value, (*self._path, key, position))
            else:
                self._mistyped(value, "a mapping", key, position)

    def text(self, key: str) -> str | None:
        """A string."""
        value = self.data.get(key)
        if value is None or isinstance(value, str):
            return value
        self._mistyped(value, "a string", key)
        return None

    def required_text(self, key: str) -> str:
        """A string that must be there."""
        value = self.text(key)
        if value is None and not self.has(key):
            self.missing(key)
        return value or ""

    def choice(self, key: str, allowed: Sequence[str]) -> str | None:
        """A string that is one of a few."""
        value = self.text(key)
        if value is None or value in allowed:
            return value
        meant = next((one for one in allowed if one.lower() == value.lower()), None) or did_you_mean(value, allowed)
        way_out = f"write {meant}" if meant else f"write {', '.join(allowed[:-1])} or {allowed[-1]}"
        self.complain(codes.BAD_VALUE, f"{self._named(key)} cannot be `{value}`", key, help=way_out)
        return None

    def texts(self, key: str) -> tuple[str, ...]:
        """The items of a list of strings."""
        found = []
        for position, value in enumerate(self._list(key)):
            if isinstance(value, str):
                found.append(value)
            else:
                self._mistyped(value, "a string", key, position)
        return tuple(found)

    def strings(self, key: str) -> dict[str, str]:
        """A mapping of strings to strings: labels, annotations, the selector of a Service."""
        found: dict[str, str] = {}
        for name, value in self.section(key).data.items():
            if isinstance(value, str):
                found[name] = value
            else:
                message = f"`{name}` in {self._named(key)} is {_described(value)}, not a string"
                way_out = self._quoted(value, key, name)
                self.complain(
                    codes.NOT_A_STRING,
                    message,
                    key,
                    name,
                    help=f"write `{name}: {way_out}`" if way_out else f"write a string, or remove `{name}`",
                )
        return found

    def flag(self, key: str) -> bool:
        """A boolean, false where it is absent."""
        value = self.data.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        self._mistyped(value, "true or false", key)
        return False

    def number(self, key: str, lowest: int, highest: int) -> int | None:
        """A whole number within limits."""
        value = self.data.get(key)
        if value is None:
            return None
        way_out = f"write a number between {lowest} and {highest}"
        if isinstance(value, bool) or not isinstance(value, int):
            self._mistyped(value, "a whole number", key, help=way_out)
            return None
        if not lowest <= value <= highest:
            self.complain(codes.BAD_VALUE, f"{self._named(key)} cannot be {value}", key, help=way_out)
            return None
        return value

    def port(self, key: str) -> int | None:
        """A port number."""
        value = self.data.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self._mistyped(value, "a whole number", key)
            return None
        if not 1 <= value <= _HIGHEST_PORT:
            self.complain(codes.BAD_PORT, f"port {value} is out of range", key, help="write a port between 1 and 65535")
            return None
        return value

    def required_port(self, key: str) -> int:
        """A port number that must be there."""
        value = self.port(key)
        if value is None and not self.has(key):
            self.missing(key)
        return value or 0

    def port_or_name(self, key: str) -> int | str | None:
        """A port number, or the name of a port. To Kubernetes 0 and the empty string are as good as absent here."""
        value = self.data.get(key)
        if value == "" or (value == 0 and not isinstance(value, bool)):
            return None
        if not isinstance(value, str):
            return self.port(key)
        if value.isdigit():
            # Kubernetes takes this for a name, and no port has such a name: the Service would lead nowhere.
            self._mistyped(value, "a number", key, help=f"write {value} without quotes")
            return None
        return value

    def address(self, key: str) -> str | None:
        """An IP address, in its usual spelling. To Kubernetes the empty string is as good as absent here."""
        value = self.text(key)
        if not value:
            return None
        try:
            return str(ipaddress.ip_address(value))
        except ValueError:
            way_out = "write an IPv4 or IPv6 address"
            self.complain(codes.BAD_ADDRESS, f"`{value}` is not an IP address", key, help=way_out)
            return None

    def missing(self, key: str) -> None:
        """Say that a field must be there."""
        self.complain(codes.MISSING, f"{self._named(key)} is missing", help=f"write `{key}: ..` here")

    def complain(self, code: Code, message: str, *below: str | int, help: str | None = None) -> None:  # noqa: A002
        """Report something about this section, or about what is below it."""
        self._reporter.report(code, message, self._manifest.locate(*self._path, *below), help=help)

    def _list(self, key: str) -> list[object]:
        value = self.data.get(key)
        if value is None or isinstance(value, list):
            return value or []
        self._mistyped(value, "a list", key)
        return []

    def _mistyped(self, value: object, wanted: str, *below: str | int, help: str | None = None) -> None:  # noqa: A002
        message = f"{self._named(*below)} is {_described(value)}; it must be {wanted}"
        self.complain(codes.WRONG_TYPE, message, *below, help=help or self._way_out(value, wanted, *below))

    def _way_out(self, value: object, wanted: str, *below: str | int) -> str:
        if wanted == "a string" and (quoted := self._quoted(value, *below)):
            return f"quote it: {quoted}"
        if wanted == "a whole number" and isinstance(value, str) and value.isdigit():
            return f"write {value} without quotes"
        ways = {"a mapping": "write its fields below it, indented", "a list": "start each entry with `- `"}
        return ways.get(wanted, f"write {wanted}")

    def _quoted(self, value: object, *below: str | int) -> str | None:
        """A value that is no string only for want of quotes, as it was written."""
        if not isinstance(value, bool | int | float):
            return None
        span = self._manifest.locate(*self._path, *below)
        return f'"{span.underlined if span is not None else _as_written(value)}"'

    def _named(self, *below: str | int) -> str:
        text = ""
        for part in (*self._path, *below):
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return f"`{text}`"


def _described(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "a mapping"


def _as_written(value: bool | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
