"""Envoy 1.40's normalisation of paths, hosts and queries, as measured: see `tests.differential` for the real one."""

from __future__ import annotations

import re

__all__ = ["is_authority", "joined_values", "normalized_path"]

_ESCAPED = set('"<>^`{|}') | {chr(code) for code in range(0x80, 0x110)}
_UNRESERVED = re.compile(r"%(2[dDeE]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aAeE])")


def normalized_path(target: str) -> str | None:
    """normalize_path and merge_slashes, with KEEP_UNCHANGED for escaped slashes; None where it is refused."""
    if "#" in target or "%00" in target.partition("?")[0]:
        return None
    path, question, query = target.partition("?")
    if not path.startswith("/"):
        return target
    path = re.sub(r"(?<=/)(\.\.?);[^/]*", r"\1", path)  # parameters of dot segments, before anything is decoded
    path = _unescaped(path).replace("\\", "/")
    kept: list[str] = []
    *inner, last = path[1:].split("/")
    for segment in inner:
        _step(kept, segment)
    if last in (".", ".."):
        _step(kept, last)
        last = ""
    path = "/" + "/".join([*kept, last])
    path = "".join("".join(f"%{byte:02X}" for byte in c.encode()) if c in _ESCAPED else c for c in path)
    return _merged(path) + question + query


def _unescaped(path: str) -> str:
    """Letters out of `%XX`; where that would give a `%XX` together with a percent sign before it, the sign is `%25`."""
    written, invalid, place = "", -3, 0
    while place < len(path):
        found = _UNRESERVED.match(path, place)
        if found is None:
            if path[place] == "%" and not re.match("%[0-9A-Fa-f]{2}", path[place:]):
                invalid = len(written)
            written += path[place]
            place += 1
            continue
        written += chr(int(found[1], 16))
        place += 3
        behind = path[place : place + 1] if len(written) == invalid + 2 else ""
        if re.fullmatch("%[0-9A-Fa-f]{2}", written[invalid:] + behind if invalid >= 0 else ""):
            written = f"{written[:invalid]}%25{written[invalid + 1 :]}"
            invalid = -3
    return written


def _step(kept: list[str], segment: str) -> None:
    if segment == "..":
        del kept[-1:]
    elif segment != ".":
        kept.append(segment)


def _merged(path: str) -> str:
    """The parts between slashes, with one slash between, one before and, if there was one, one behind."""
    parts = [part for part in path.split("/") if part]
    if path == "/":
        return path
    return "/" + "/".join(parts) + ("/" if path.endswith("/") else "")


def is_authority(host: str) -> bool:
    """Return whether Envoy accepts it as the authority of a request: it checks only the characters."""
    return re.fullmatch(r"[-A-Za-z0-9!$%&'()*+,.:;=@\[\]_~]*", host) is not None


_INLINE = re.compile(  # of these Envoy's map of headers holds one entry each
    r"accept|accept-encoding|access-control-request-(headers|method|private-network)|authentication|authorization"
    r"|cache-control|cdn-loop|content-(encoding|length|type)|grpc-(accept-encoding|timeout)"
    r"|if-(match|modified-since|none-match|range|unmodified-since)|origin|pragma|proxy-status|referer|user-agent|via"
    r"|x-client-trace-id|x-forwarded-(for|host|port|proto)|x-request-id"
)


def joined_values(name: str, values: list[str]) -> list[str]:
    """The values of a header in HTTP/1, for filters."""
    return [",".join(value for value in values if value)] if _INLINE.fullmatch(name) else values
