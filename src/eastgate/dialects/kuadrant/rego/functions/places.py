"""Built-in functions of times, durations, networks, versions."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from zoneinfo import ZoneInfo

from eastgate.basics.regexes import regex
from eastgate.dialects.kuadrant.rego.functions.registry import Bounded, Failed, function
from eastgate.dialects.kuadrant.rego.values import Value

Number = int | Decimal
Network = IPv4Network | IPv6Network
IpAddress = IPv4Address | IPv6Address

_SECOND: Final = 10**9
_LIMIT: Final = 2**63
_RFC3339: Final = regex(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII)
_DURATION: Final = regex(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+", re.ASCII)
_PART: Final = regex(r"(\d+\.?\d*|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_VERSION: Final = regex(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@function("time.parse_rfc3339_ns", "string", result="number")
def parse_rfc3339_ns(text: str) -> Value:
    """Return nanoseconds since 1970."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise Failed
    try:
        moment = datetime(*(int(match[at]) for at in range(1, 7)), tzinfo=UTC)  # type: ignore[misc,arg-type]
    except ValueError:
        raise Failed from None
    offset = 0
    if match[8]:
        if int(match[9]) > 23 or int(match[10]) > 59:
            raise Failed
        offset = (int(match[9]) * 60 + int(match[10])) * 60 * (-1 if match[8] == "-" else 1)
    fraction = int((match[7] or "0")[:9].ljust(9, "0"))
    passed = moment - _EPOCH
    return _in_range((passed.days * 86400 + passed.seconds - offset) * _SECOND + fraction)


def _in_range(nanoseconds: int) -> int:
    if not -_LIMIT <= nanoseconds < _LIMIT:
        raise Failed
    return nanoseconds


@function("time.parse_duration_ns", "string", result="number")
def parse_duration_ns(text: str) -> Value:
    """Return the nanoseconds of a text like `1h30m`."""
    if text in ("0", "+0", "-0"):
        return 0
    if not _DURATION.fullmatch(text):
        if re.search(r"[0-9.][dwy]", text):
            raise Bounded("it has a duration in days")
        raise Failed
    total = sum(int(Fraction(part[1]) * _UNITS[part[2]]) for part in _PART.finditer(text))
    return _in_range(-total if text.startswith("-") else total)


def _moment(value: Number | tuple[Value, ...]) -> datetime:
    """Return the first element of a time: nanoseconds, alone or with the name of a zone."""
    zone: Value = ""
    nanoseconds: Value = value
    if isinstance(value, tuple):
        if len(value) != 2:
            raise Failed
        nanoseconds, zone = value
    if not isinstance(nanoseconds, int) or isinstance(nanoseconds, bool) or not isinstance(zone, str):
        raise Failed
    _in_range(nanoseconds)
    moment = _EPOCH + timedelta(seconds=nanoseconds // _SECOND)
    if zone in ("", "UTC"):
        return moment
    try:
        return moment.astimezone(ZoneInfo(zone))
    except (LookupError, ValueError, OSError):
        raise Bounded("it names a time zone that is not known here") from None


@function("time.date", "number|array", result="array")
def time_date(value: Number | tuple[Value, ...]) -> Value:
    """Return year, month, day."""
    moment = _moment(value)
    return moment.year, moment.month, moment.day


@function("time.clock", "number|array", result="array")
def time_clock(value: Number | tuple[Value, ...]) -> Value:
    """Return hour, minute, second."""
    moment = _moment(value)
    return moment.hour, moment.minute, moment.second


@function("time.weekday", "number|array", result="string")
def time_weekday(value: Number | tuple[Value, ...]) -> Value:
    """Return the English name of the day."""
    names = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    return names[_moment(value).weekday()]


@function("time.add_date", "number", "number", "number", "number", result="number")
def add_date(nanoseconds: Number, years: Number, months: Number, days: Number) -> Value:
    """Add years, months and days. The 31st of a shorter month becomes a day of the next month."""
    if not (isinstance(years, int) and isinstance(months, int) and isinstance(days, int)):
        raise Failed
    if max(abs(years), abs(months), abs(days)) > 100_000 or not isinstance(nanoseconds, int):
        raise Bounded("it counts with numbers that are too large")
    moment = _moment(nanoseconds)
    month = moment.month - 1 + months
    try:
        first = date(moment.year + years + month // 12, month % 12 + 1, 1)
        later = first + timedelta(days=moment.day - 1 + days)
    except (OverflowError, ValueError):
        raise Bounded("it counts with numbers that are too large") from None
    passed = (later - moment.date()).days
    return _in_range(nanoseconds + passed * 86400 * _SECOND)


# Networks


def _network(text: str) -> Network:
    address, slash, bits = text.partition("/")
    if not slash or not bits.isascii() or not bits.isdigit() or "%" in text:
        raise Failed
    try:
        network = ip_network(f"{address}/{bits}", strict=False)
    except ValueError:
        raise Failed from None
    if isinstance(network, IPv6Network) and network.network_address.ipv4_mapped is not None:
        raise Bounded("it has an IPv4 network that is written as IPv6")
    return network


def _address(text: str) -> IpAddress | None:
    if "%" in text:
        return None
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _covers(network: Network, address: IpAddress) -> bool:
    return network.version == address.version and address in network


@function("net.cidr_contains", "string", "string", result="boolean")
def cidr_contains(network: str, other: str) -> Value:
    """Return whether an address or a network is inside a network."""
    outer = _network(network)
    address = _address(other)
    if address is not None:
        return _covers(outer, address)
    inner = _network(other)
    return _covers(outer, inner.network_address) and _covers(outer, inner.broadcast_address)


@function("net.cidr_intersects", "string", "string", result="boolean")
def cidr_intersects(left: str, right: str) -> Value:
    """Return whether two networks have an address in common."""
    first, second = _network(left), _network(right)
    return _covers(first, second.network_address) or _covers(second, first.network_address)


@function("net.cidr_is_valid", "any", result="boolean")
def cidr_is_valid(text: Value) -> Value:
    if not isinstance(text, str):
        return False
    try:
        _network(text)
    except Failed:
        return False
    return True


# Versions


@function("semver.is_valid", "any", result="boolean")
def semver_is_valid(text: Value) -> Value:
    return isinstance(text, str) and _VERSION.fullmatch(text) is not None


@function("semver.compare", "string", "string", result="number")
def semver_compare(left: str, right: str) -> Value:
    """Return -1, 0 or 1."""
    first, second = _VERSION.fullmatch(left), _VERSION.fullmatch(right)
    if first is None or second is None:
        raise Failed
    for at in (1, 2, 3):
        if int(first[at]) != int(second[at]):
            return -1 if int(first[at]) < int(second[at]) else 1
    return _compare_prereleases(first[4], second[4])


def _compare_prereleases(left: str | None, right: str | None) -> int:
    if left is None or right is None:
        return (left is None) - (right is None)
    first, second = left.split("."), right.split(".")
    for mine, theirs in zip(first, second, strict=False):
        if mine == theirs:
            continue
        numbers = mine.isdigit(), theirs.isdigit()
        if all(numbers):
            return -1 if int(mine) < int(theirs) else 1
        if any(numbers):
            return -1 if numbers[0] else 1
        return -1 if mine < theirs else 1
    return (len(first) > len(second)) - (len(first) < len(second))
