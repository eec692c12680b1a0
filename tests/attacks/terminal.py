"""Text that attacks a terminal or a reader of CI logs, commands that print it, and checks of their output."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import threading
import time
import unicodedata
from contextlib import suppress
from pathlib import Path

import yaml

from tests.local.running import EASTGATE, SHOP
from tests.patience import PATIENCE

__all__ = ["HOSTILE", "LOG", "Screen", "World", "in_pipes", "on_a_terminal", "world", "wrong"]

# A color that Eastgate never uses, the title of the window, C1, DEL, reversed letters, and line breaks.
HOSTILE = "x\x1b[35my\x1b]0;owned\x07\x9b31m\x7f\u202e\u2066\u2028\u2029\x85\x0b\r" + (
    "\n::error::forged\n  ::warning::forged\nFORGED"
)
_SHELL = HOSTILE.replace("\x0b", "")  # the characters that YAML allows, escaped
_WRITTEN = json.dumps(_SHELL)  # YAML has the escapes of JSON
_LINES = "visible\n::error::forged\n  ::error::forged\n"
_LONG = f"{'visible ' * 9}::error::forged {'visible ' * 9}"  # a YAML writer may break this line
_SGR = re.compile(r"\x1b\[(?!35)[0-9;]*m")
_LIVE = re.compile(r"\x1b\[(?:\?25[lh]|2K|[0-9]*A)|\r")
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_OWN_COMMAND = re.compile(r"::(?:error|warning|notice) (?:file=[^:]*,line=[^:]*,)?[^:]*title=EG[^:]*::")

LOG = Path(__file__).parents[1] / "local" / "shop.log"

_BROKEN = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: {_WRITTEN}, namespace: shop}}
---
apiVersion: v1
kind: Pod
metadata: {{name: labelled, namespace: shop, labels: {{{_WRITTEN}: a, b: {_WRITTEN}}}}}
---
apiVersion: v1
kind: {_WRITTEN}
metadata: {{name: a}}
---
apiVersion: {_WRITTEN}
kind: AuthorizationPolicy
metadata: {{name: a}}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {{name: {_WRITTEN}, namespace: {_WRITTEN}}}
spec:
  {_WRITTEN}: 1
  action: {_WRITTEN}
  targetRefs: [{{kind: {_WRITTEN}, name: {_WRITTEN}}}]
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {{name: a, namespace: shop}}
spec:
  action: ALLOW
  enforcementLevel: APPLICATION
  targetRefs: [{{kind: Pod, selector: {{matchLabels: {{{_WRITTEN}: {_WRITTEN}}}}}}}]
  rules:
  - authorizationSource: {{serviceAccounts: [{_WRITTEN}], identities: [{_WRITTEN}]}}
    networkAttributes: {{ports: [{_WRITTEN}]}}
---
a: *{"x" * 5}
---
raw: \x1b]0;owned\x07 \x9b \u202e
"""

_TABLE = f"""\
apiVersion: eastgate.dev/v1alpha1
kind: DecisionTest
metadata: {{name: hostile}}
spec:
  manifests: [MANIFESTS]
  cases:
  - name: {_WRITTEN}
    cites: {_WRITTEN}
    from: sa:shop/web
    to: pod:shop/cart
    port: 8080
    http: {{path: {_WRITTEN}, host: {_WRITTEN}, headers: {{a: {_WRITTEN}}}}}
    expect: deny
    by: {_WRITTEN}
  - {{name: {_WRITTEN}, from: {_WRITTEN}, to: {_WRITTEN}, expect: allow}}
  - {{from: sa:shop/web, to: pod:shop/cart, port: 8080, expect: allow, http: {{path: {_WRITTEN}}}}}
  rejects:
  - {{policy: {_WRITTEN}, code: {_WRITTEN}}}
"""


class World:
    """A folder with valid and broken manifests, tables, settings and a log, all with hostile names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.good = folder / _file_name("good")
        self.broken = folder / _file_name("broken")
        self.table = folder / (_file_name("table") + ".yaml")
        self.settings = folder / (_file_name("settings") + ".yaml")

    @property
    def log(self) -> str:
        """Return lines of a proxy's log. In each line, another field is hostile."""
        lines = []
        records = [json.loads(line) for line in LOG.read_text().splitlines()]
        record = next(one for one in records if one["eastgate"] == "request")
        for field, value in record.items():
            if isinstance(value, str) and field != "eastgate":
                lines.append(json.dumps({**record, field: HOSTILE}))
                lines.append(json.dumps({**record, field: f"{value}{HOSTILE}"}))
        lines.append(json.dumps({**record, "path": f"/{HOSTILE}", "host": HOSTILE, "time": HOSTILE, "method": HOSTILE}))
        return "\n".join([*lines, f'{{"eastgate": "{HOSTILE}'])


def _file_name(name: str) -> str:
    # 0x9b alone is invalid UTF-8, and CSI for a terminal that accepts C1
    return f"{name}\x1b[35m\x1b]0;t\x07\n::error::forged\nFORGED\u202e\udc9b"


def world(folder: Path) -> World:
    """Write the hostile world into a folder."""
    made = World(folder)
    shutil.copytree(SHOP, made.good)
    for path in sorted(made.good.iterdir()):
        documents = [one for one in yaml.safe_load_all(path.read_text("utf-8")) if one]
        for document in documents:
            document["metadata"].setdefault("annotations", {}).update(note=_SHELL, lines=_LINES, long=_LONG)
        (made.good / _file_name(path.stem)).with_suffix(".yaml").write_text(yaml.safe_dump_all(documents))
        path.unlink()
    made.broken.mkdir()
    (made.broken / (_file_name("x") + ".yaml")).write_text(_BROKEN, encoding="utf-8")
    made.table.write_text(_TABLE.replace("MANIFESTS", json.dumps("good-link")), encoding="utf-8")
    (folder / "good-link").symlink_to(made.good)
    made.settings.write_text(f"settings: {{denyOnly: {_WRITTEN}, {_WRITTEN}: {_WRITTEN}}}\n", encoding="utf-8")
    return made


def in_pipes(words: list[str], folder: Path, stdin: str = "") -> tuple[bytes, bytes]:
    """Run a command without a terminal, and return its standard output and standard error."""
    done = subprocess.run(
        [*EASTGATE, *words],
        cwd=folder,
        env=_environment(),
        input=stdin.encode("utf-8", "surrogateescape"),
        capture_output=True,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode("utf-8", "replace")
    return done.stdout, done.stderr


def on_a_terminal(words: list[str], folder: Path, stdin: str = "") -> bytes:
    """Run a command on a terminal, and return its output."""
    terminal, other_end = pty.openpty()
    environment = {**_environment(), "COLUMNS": "150", "LINES": "40", "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [*EASTGATE, *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=other_end,
        stderr=other_end,
    )
    os.close(other_end)
    assert process.stdin is not None
    process.stdin.write(stdin.encode("utf-8", "surrogateescape"))
    process.stdin.close()
    shown = Screen(terminal).all()
    os.close(terminal)
    process.wait()
    assert b"Traceback" not in shown, shown.decode("utf-8", "replace")
    return shown


class Screen:
    """The output on a terminal. A thread reads it all the time, since a program blocks on a full terminal."""

    def __init__(self, terminal: int) -> None:
        self._shown = bytearray()
        self._reading = threading.Thread(target=self._read, args=[terminal], daemon=True)
        self._reading.start()

    def _read(self, terminal: int) -> None:
        with suppress(OSError):  # the other end is closed
            while chunk := os.read(terminal, 1 << 16):
                self._shown += chunk

    def wait_for(self, text: bytes) -> None:
        """Wait until the terminal shows this text."""
        ends = time.monotonic() + PATIENCE
        while text not in self._shown:
            assert time.monotonic() < ends, self._shown.decode("utf-8", "replace")
            time.sleep(0.05)

    def all(self) -> bytes:
        """Wait for the end of the program, and return all output."""
        self._reading.join(PATIENCE)
        assert not self._reading.is_alive()
        return bytes(self._shown).replace(b"\r\n", b"\n")  # the terminal adds \r


def _environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    return {**environment, "PYTHONUTF8": "1"}


def wrong(shown: bytes, *, terminal: bool = False, live: bool = False, commands: bool = False) -> list[str]:
    """Return the parts of an output that a terminal or CI system would obey, except Eastgate's own."""
    try:
        text = shown.decode("utf-8")
    except UnicodeDecodeError as error:
        return [f"bytes that are no UTF-8: {error}"]
    if terminal:
        text = _SGR.sub("", text)
    if live:
        text = _LIVE.sub("", text)
    found = [
        f"{character!r} in {text[max(0, place - 60) : place + 60]!r}"
        for place, character in enumerate(text)
        if character not in "\n\t"
        and (unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in _BIDI)
    ]
    found += [
        f"a line that is not ours: {line!r}"
        for line in text.split("\n")
        if line.lstrip().startswith(("::", "FORGED")) and not (commands and _OWN_COMMAND.match(line))
    ]
    return found[:5]
