"""For every way to save a file, its policies stay in force while it is empty, half written or missing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.local.running import Up, up

_CALLS = {
    "a": ("--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8080"),
    "b": ("--from", "sa:shop/web", "--to", "pod:shop/payments", "--port", "8443"),
}
_WITHOUT = ("cluster.yaml", "policies.yaml")
_PAUSE = 1.0  # long enough for several readings of a half-written file


def _deny(name: str, app: str, more: str = "") -> str:
    return f"""\
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {{name: {name}, namespace: shop}}
spec:
  enforcementLevel: NETWORK
  targetRefs: [{{kind: Pod, selector: {{matchLabels: {{app: {app}}}}}}}]
  action: DENY
  rules:
  - authorizationSource: {{serviceAccounts: [sandbox/other]}}
  - authorizationSource: {{serviceAccounts: [web]}}
{more}"""


_A, _B = _deny("deny-a", "cart"), _deny("deny-b", "payments")
_TEXT = f"{_A}---\n{_B}"
_OTHER = _TEXT.replace("sandbox/other", "sandbox/another")


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with up(tmp_path_factory.mktemp("saving"), name="saving", without=_WITHOUT, more=_TEXT) as running:
        yield running


def _allowed(cli: Cli) -> set[str]:
    """The allowed calls, among those that the policies deny."""
    return {name for name, words in _CALLS.items() if cli("call", "--name", "saving", *words).exit_code == 0}


def _watch(cli: Cli) -> None:
    """Repeat the calls for as long as a pause takes."""
    ends = time.monotonic() + _PAUSE
    while time.monotonic() < ends:
        assert _allowed(cli) == set()


def _truncate(path: Path, text: str, during: Callable[[], None]) -> None:
    with path.open("w") as file:
        during()
        file.write(text)


def _half(path: Path, text: str, during: Callable[[], None]) -> None:
    with path.open("w") as file:
        file.write(_A)  # whole documents
        file.flush()
        during()
        file.write(text[len(_A) :])


def _half_of_a_document(path: Path, text: str, during: Callable[[], None]) -> None:
    cut = text.index("  - authorizationSource: {serviceAccounts: [web]}")  # without its last rule it is one too
    with path.open("w") as file:
        file.write(text[:cut])
        file.flush()
        during()
        file.write(text[cut:])


def _empty_and_closed(path: Path, text: str, during: Callable[[], None]) -> None:
    path.write_text("")
    during()
    path.write_text(text)


def _backup_and_new(path: Path, text: str, during: Callable[[], None]) -> None:
    path.rename(path.with_suffix(".yaml~"))
    with path.open("w") as file:
        during()
        file.write(text)
    path.with_suffix(".yaml~").unlink()


def _rename(path: Path, text: str, during: Callable[[], None]) -> None:
    new = path.with_suffix(".new")
    new.write_text(text)
    during()
    new.rename(path)


@pytest.mark.parametrize(
    "save",
    [_truncate, _half, _half_of_a_document, _empty_and_closed, _backup_and_new, _rename],
    ids=lambda one: one.__name__.strip("_"),
)
def test_what_is_being_saved_opens_nothing(
    cli: Cli, mesh: Up, save: Callable[[Path, str, Callable[[], None]], None]
) -> None:
    path = mesh.manifests / "more.yaml"
    text = _OTHER if path.read_text() == _TEXT else _TEXT
    assert _allowed(cli) == set()
    save(path, text, lambda: _watch(cli))
    enforced = mesh.until("enforced")
    assert enforced["removed"] == enforced["added"] == []
    assert len(enforced["changed"]) == 2
    assert _allowed(cli) == set()


def test_a_file_that_is_gone_for_a_moment_opens_nothing(cli: Cli, mesh: Up) -> None:
    path = mesh.manifests / "more.yaml"
    text = path.read_text()
    for _ in range(20):
        path.unlink()
        os.sched_yield()
        path.write_text(text)
    path.write_text(text.replace("sandbox/", "sandbox/x"))
    enforced = mesh.until("enforced")
    assert (enforced["removed"], enforced["added"]) == ([], [])
    assert len(enforced["changed"]) == 2
    assert _allowed(cli) == set()


def test_a_world_that_is_being_saved_stays(cli: Cli, mesh: Up) -> None:
    path = mesh.manifests / "world.yaml"
    text, before = path.read_text(), mesh.processes()
    with path.open("w") as file:
        file.write(text[: text.index("---")])
        file.flush()
        _watch(cli)
        assert mesh.processes() == before
        file.write(text[text.index("---") :])
    mesh.edit("more.yaml", "deny-a", "deny-again")
    enforced = mesh.until("enforced")
    assert enforced["added"] == ["AuthorizationPolicy/shop/deny-again"]
    mesh.edit("more.yaml", "deny-again", "deny-a")
    while "AuthorizationPolicy/shop/deny-again" not in mesh.until("enforced")["removed"]:
        pass
    assert mesh.processes() == before
    assert _allowed(cli) == set()


def test_a_file_that_is_open_for_writing_keeps_no_other_from_being_enforced(cli: Cli, mesh: Up) -> None:
    path, other = mesh.manifests / "more.yaml", mesh.manifests / "other.yaml"
    text = path.read_text()
    metrics = ("--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "9090")
    with path.open("w") as file:
        other.write_text(_deny("deny-c", "web").replace("serviceAccounts: [web]", "serviceAccounts: [cart]"))
        assert mesh.until("enforced")["added"] == ["AuthorizationPolicy/shop/deny-c"]
        assert cli("call", "--name", "saving", "--from", "sa:shop/cart", "--to", "pod:shop/web").exit_code == 1
        assert cli("call", "--name", "saving", *metrics).exit_code == 1
        while "open for writing" not in (noted := mesh.until("noted"))["message"]:
            pass
        assert "more.yaml" in noted["message"]
        file.write(text)
    other.unlink()
    assert mesh.until("enforced")["removed"] == ["AuthorizationPolicy/shop/deny-c"]


def test_a_file_that_was_emptied_stays_in_force_until_it_is_removed(cli: Cli, mesh: Up) -> None:
    path = mesh.manifests / "more.yaml"
    text = path.read_text()
    path.write_text("")
    while "more.yaml is empty" not in mesh.until("noted")["message"]:
        pass
    assert _allowed(cli) == set()
    path.unlink()
    assert len(mesh.until("enforced")["removed"]) == 2
    assert _allowed(cli) == {"a", "b"}
    path.write_text(text)
    mesh.until("enforced")


def test_policies_that_are_removed_count_no_more(cli: Cli, mesh: Up) -> None:
    path = mesh.manifests / "more.yaml"
    path.write_text(_B)
    while not (enforced := mesh.until("enforced"))["removed"]:
        pass
    assert enforced["removed"] == ["AuthorizationPolicy/shop/deny-a"]
    assert _allowed(cli) == {"a"}
    path.unlink()
    assert mesh.until("enforced")["removed"] == ["AuthorizationPolicy/shop/deny-b"]
    path.write_text(_TEXT)
    assert len(mesh.until("enforced")["added"]) == 2
    assert _allowed(cli) == set()
