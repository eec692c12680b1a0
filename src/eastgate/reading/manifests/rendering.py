"""Runs the programs that build manifests, with limits of time and size: `kustomize`, or the one in `kubectl`, and
`helm`.

They get no network, no plugins, no configuration and no other programs.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import KUSTOMIZE_FAILED

_KUBECTL_LOG = regex(r'[A-Z]\d{4} [\d:.]+ +\d+ \S+\] ".*?" err="(.*)"')
_ERROR = regex(r"(?ms)^[Ee]rror:?(.*?)(?:^\s*$|\Z)")
_KUBECTL_BLOCK = regex(r"(?ms)^[A-Z]\d{4} [^\n]* err=<\n(.*?)^ >$")
_SECONDS = 120
_MOST_BYTES = 256 * 1024 * 1024
_MOST_MEMORY = 4 * 1024 * 1024 * 1024
_LONGEST_REASON, _BEGINNING, _END = 500, 150, 340  # what is wrong stands at the end, behind a chain of causes


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """What a program wrote, or what is wrong with that.

    `is_final`: it would be the same again. What takes too long on a busy machine need not.
    """

    content: bytes = b""
    problem: str | None = None
    is_final: bool = True


class Renderer:
    """Runs `kustomize build`, or `kubectl kustomize`, whichever is there."""

    def __init__(self, path: str | None = None) -> None:
        self._commands = [
            (program, words)
            for name, *words in (("kustomize", "build"), ("kubectl", "kustomize"))
            if (program := shutil.which(name, path=path))
        ]

    @property
    def is_there(self) -> bool:
        return bool(self._commands)

    @property
    def command(self) -> tuple[str, ...]:
        """Return the program and the words that build a kustomization."""
        program, words = self._commands[0]
        return (program, *words)

    def render(self, folder: str, reporter: Reporter) -> bytes | None:
        """Render a kustomization; None, and a finding, where that fails."""
        program, *words = self.command
        command = " ".join((os.path.basename(program), *words, printable(folder)))
        output = run([program, *words, "--", os.path.abspath(folder)])
        if output.problem is None:
            return output.content
        help_ = None if output.problem.startswith("cannot be run") else f"run it to see why: {command}"
        reporter.report(KUSTOMIZE_FAILED, f"`{command}` {output.problem}", help=help_)
        return None


def run(command: Sequence[str], variables: Mapping[str, str] | None = None) -> ProgramOutput:
    """Run a program that builds manifests. `variables` name folders, which are empty ones."""
    with tempfile.TemporaryDirectory(prefix="eastgate-") as empty, tempfile.TemporaryFile() as errors:
        # No program can be found and no address reached, so that nothing is fetched even if a part is overlooked.
        nowhere = "http://127.0.0.1:9"
        env = {
            "PATH": empty,
            "HOME": empty,
            "HTTP_PROXY": nowhere,
            "HTTPS_PROXY": nowhere,
            "KUBECONFIG": os.devnull,
        }
        env |= {name.lower(): value for name, value in env.items() if name.endswith("_PROXY")}
        env |= {name: os.path.join(empty, inner) for name, inner in (variables or {}).items()}
        try:
            process = subprocess.Popen(  # noqa: S603 - a program from the PATH, and paths that exist
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=empty,
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            return ProgramOutput(problem=f"cannot be run: {printable(str(error.strerror))}", is_final=False)
        with contextlib.suppress(OSError, ValueError, AttributeError):  # elsewhere than on Linux
            resource.prlimit(process.pid, resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (_MOST_BYTES, _MOST_BYTES))
        content, problem = _output(process)
        if problem is not None:
            return ProgramOutput(problem=problem, is_final=problem.startswith("writes"))
        if process.returncode != 0:
            errors.seek(0)
            reason = _reason(errors.read(64 * 1024)).replace(f"{empty}{os.sep}", "")
            return ProgramOutput(problem=f"fails: {reason}", is_final=process.returncode > 0)
        return ProgramOutput(content)


def _output(process: subprocess.Popen[bytes]) -> tuple[bytes, str | None]:
    """Return what a process writes, or what is wrong with it."""
    timed_out = False

    def stop() -> None:
        nonlocal timed_out
        timed_out = True
        _kill(process)

    timer = threading.Timer(_SECONDS, stop)
    timer.daemon = True
    timer.start()
    try:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        with process.stdout:
            content = process.stdout.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            _kill(process)
            process.wait()
            return b"", f"writes more than {_MOST_BYTES // (1024 * 1024)} MiB"
        process.wait()
    finally:
        timer.cancel()
    return content, f"takes longer than {_SECONDS} seconds" if timed_out else None


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _reason(stderr: bytes) -> str:
    """Return what a program says is wrong: its first error, up to an empty line."""
    text = stderr.decode("utf-8", "replace")
    found = _KUBECTL_BLOCK.search(text) or _ERROR.search(text)
    lines = [line for line in text.splitlines() if line.strip()]
    wanted = found[1] if found is not None else lines[-1] if lines else "no reason given"
    if log := _KUBECTL_LOG.fullmatch(wanted.strip()):
        wanted = log[1].replace('\\"', '"')
    reason = printable(" ".join(wanted.split()))
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[:_BEGINNING]} ... {reason[-_END:]}"
