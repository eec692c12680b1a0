"""Hostile files, by name, for a folder with good manifests."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

__all__ = ["NOT_FILES", "POD", "SHADOW", "TEXTS", "pod"]

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME, namespace: shop}\nspec: {serviceAccountName: web}\n"
SHADOW = "alice:$6$salt$hash-that-nobody-may-see:19000:0:99999:7:::\n"


def pod(name: str) -> str:
    """Return a manifest of a pod."""
    return POD.replace("NAME", name)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    finally:
        os.chdir(here)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _terminal(path: Path) -> None:
    path.symlink_to("/dev/tty")


def _linked_pipe(path: Path) -> None:
    os.mkfifo(path.parent / "pipe")
    path.symlink_to("pipe")


NOT_FILES: dict[str, Callable[[Path], None]] = {
    "a pipe": _pipe,
    "a socket": _socket,
    "a device": _device,
    "a terminal": _terminal,
    "a link to a pipe": _linked_pipe,
}

_BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)

TEXTS: dict[str, tuple[bytes, str | None]] = {
    "deep lists": (b"[" * 100_000, "EG10"),
    "deep mappings": (b"".join(b" " * depth + b"a:\n" for depth in range(2000)), "EG10"),
    "deep JSON": (b'{"a":' * 50_000, "EG10"),
    "aliases of aliases": (_BOMB.encode(), "EG10"),
    "an alias in itself": (b"a: &a [*a]\n", "EG10"),
    "a NUL": (pod("nul").encode().replace(b"web", b"w\0b"), "EG10"),
    "only NULs": (b"\0" * 10_000, "EG10"),
    "no UTF-8": (pod("bytes").encode().replace(b"web", b"w\xffb"), "EG1004"),
    "UTF-16": (pod("wide").encode("utf-16"), "EG1004"),
    "a byte order mark": (b"\xef\xbb\xbf" + pod("marked").encode(), None),
    "a mark in the middle": (pod("x").encode() + b"---\n\xef\xbb\xbf" + pod("y").encode(), "EG10"),
    "one long line": (b"a: " + b"x" * 5_000_000, "EG10"),
    "one long key": (b"x" * 2_000_000 + b": a", "EG10"),
    "many documents": (b"---\n" * 100_000, "EG1046"),
    "many tags": (b"".join(b"%%TAG !t%d! tag:x\n" % number for number in range(1000)) + b"--- a\n", "EG10"),
    "nothing": (b"", "EG1046"),
    "a merge behind the kind": (pod("x").encode() + b"<<: {kind: NetworkPolicy}\n", "EG1025"),
    "a merge behind the spec": (pod("x").encode() + b"<<: {spec: {}}\n", "EG1025"),
    "a document behind dots": (pod("x").encode() + b"...\n" + pod("y").encode(), "EG1027"),
    "a document behind a carriage return": ((pod("x") + "---\n" + pod("y")).replace("\n", "\r").encode(), "EG1027"),
    "a document behind U+0085": ((pod("x") + "---\n" + pod("y")).replace("\n", "\x85").encode(), "EG1027"),
    "a document behind U+2028": ((pod("x") + "---\n" + pod("y")).replace("\n", "\u2028").encode(), "EG1027"),
    "a document on the separator": (b"--- {apiVersion: v1, kind: Pod, metadata: {name: x}}\n", "EG1026"),
    "a second JSON value in YAML": (pod("x").encode() + b"---\n{} {}\n", "EG1027"),
    "a second JSON value behind a mark": (b"\xef\xbb\xbf{}{}", "EG1027"),
    "a space before JSON": ("\xa0{}".encode(), "EG1005"),
}
"""Texts, and the prefix of the code of their first diagnostic, or None without an error."""
