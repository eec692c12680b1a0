"""Printable texts contain no part of a key."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from eastgate.control.identity import EmbeddedCa, Svid, client_context, stored_ca
from eastgate.control.identity.certificates import key_pem
from eastgate.control.identity.storage import write_private

ME = "spiffe://cluster.local/ns/shop/sa/web"
AUTHORITY = EmbeddedCa("cluster.local")
SVID = AUTHORITY.issue(ME)


def lines_of(key: str) -> list[str]:
    return [line for line in key.splitlines() if line and not line.startswith("-----")]


SECRETS = [
    line
    for key in (SVID.private_key, key_pem(AUTHORITY._state.root.key), key_pem(AUTHORITY._state.intermediate.key))
    for line in lines_of(key)
]


def shows_a_key(text: str, secrets: list[str] = SECRETS) -> bool:
    return any(secret in text for secret in secrets) or "PRIVATE KEY" in text


@pytest.mark.parametrize("shown", [SVID, [SVID], AUTHORITY, AUTHORITY._state, AUTHORITY._state.root, AUTHORITY.bundles])
@pytest.mark.parametrize("show", [repr, str, lambda thing: f"{thing}"])
def test_nothing_that_is_printed_shows_a_key(shown: object, show: Callable[[object], str]) -> None:
    assert not shows_a_key(show(shown))


def failing(step: Callable[[], object]) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is, it must not show a key
        step()
    return "".join(traceback.format_exception(caught.value))


def test_no_error_shows_a_key(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    stored_ca(tmp_path / "keys", "cluster.local")
    content = (tmp_path / "keys" / "authority.json").read_text()
    secrets = [part for part in content.replace("\\n", "\n").splitlines() if len(part) == 64]
    assert secrets
    cut = content[: content.rindex("PRIVATE KEY") - 40]

    def load_damaged() -> None:
        write_private(tmp_path / "keys", "authority.json", cut.encode())
        stored_ca(tmp_path / "keys", "cluster.local")

    def use_damaged(svid: Svid) -> Callable[[], object]:
        return lambda: client_context(svid, AUTHORITY.bundles)

    shown = [
        failing(load_damaged),
        failing(use_damaged(replace(SVID, private_key=SVID.private_key.replace("A", "B")))),
        failing(use_damaged(replace(SVID, private_key=AUTHORITY.issue(ME).private_key))),
        failing(lambda: AUTHORITY.issue("spiffe://other.example/a")),
        caplog.text,
    ]
    assert not any(shows_a_key(text, [*SECRETS, *secrets]) for text in shown)
