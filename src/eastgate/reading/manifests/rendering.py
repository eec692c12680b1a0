"""Runs the programs that build manifests, with limits of time and size: `kustomize` or `kubectl kustomize`, and `helm`.

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

from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex

_KUBECTL_LOG = regex(r'[A-Z]\d{4} [\d:.]+ +\d+ \S+\] ".*?" err="(.*)"')
_ERROR = regex(r"(?ms)^[Ee]rror:?(.*?)(?:^\s*$|\Z)")
_KUBECTL_BLOCK = regex(r"(?ms)^[A-Z]\d{4} [^\n]* err=<\n(.*?)^ >$")
_TIMEOUT_SECONDS = 120
_MAX_BYTES = 256 * 1024 * 1024
_MAX_MEMORY_BYTES = 4 * 1024 * 1024 * 1024
_GO_MEMORY_SETTINGS = {"GOGC": "400", "GOMEMLIMIT": "1GiB"}  # Go settings that save a third of the time
_MAX_REASON_CHARS, _BEGINNING_CHARS, _END_CHARS = (
    500,
    150,
    340,
)  # characters; the cause is at the end of a chain of errors


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """The output of a program, or its error.

    `is_final`: another run would have the same result. A timeout on a busy machine is not final.
    """

    content: bytes = b""
    problem: str | None = None
    is_final: bool = True


def find_kustomize() -> tuple[str, ...] | None:
    """Return the command that builds a kustomization: `kustomize build`, or `kubectl kustomize`."""
    for name, word in (("kustomize", "build"), ("kubectl", "kustomize")):
        if program := shutil.which(name):
            return program, word
    return None


def run(command: Sequence[str], variables: Mapping[str, str] | None = None) -> ProgramOutput:
    """Run a program that builds manifests. `variables` name environment variables that are set to empty folders."""
    with tempfile.TemporaryDirectory(prefix="eastgate-") as empty, tempfile.TemporaryFile() as errors:
        # No program can be found and no address reached, so nothing is fetched even if a remote part is overlooked.
        nowhere = "http://127.0.0.1:9"
        env = {
            "PATH": empty,
            "HOME": empty,
            "HTTP_PROXY": nowhere,
            "HTTPS_PROXY": nowhere,
            "KUBECONFIG": os.devnull,
            **_GO_MEMORY_SETTINGS,
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
        with contextlib.suppress(OSError, ValueError, AttributeError):  # only Linux supports this
            resource.prlimit(process.pid, resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (_MAX_BYTES, _MAX_BYTES))
        content, problem = _output(process)
        if problem is not None:
            return ProgramOutput(problem=problem, is_final=problem.startswith("writes"))
        if process.returncode != 0:
            errors.seek(0)
            reason = _reason(errors.read(64 * 1024)).replace(f"{empty}{os.sep}", "")
            return ProgramOutput(problem=f"fails: {reason}", is_final=process.returncode > 0)
        return ProgramOutput(content)


def _output(process: subprocess.Popen[bytes]) -> tuple[bytes, str | None]:
    """Return the output of a process, or its error."""
    timed_out = False

    def stop() -> None:
        nonlocal timed_out
        timed_out = True
        _kill(process)

    timer = threading.Timer(_TIMEOUT_SECONDS, stop)
    timer.daemon = True
    timer.start()
    try:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        with process.stdout:
            content = process.stdout.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            _kill(process)
            process.wait()
            return b"", f"writes more than {_MAX_BYTES // (1024 * 1024)} MiB"
        process.wait()
    finally:
        timer.cancel()
    return content, f"takes longer than {_TIMEOUT_SECONDS} seconds" if timed_out else None


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _reason(stderr: bytes) -> str:
    """Return the first error of a program, up to an empty line."""
    text = stderr.decode("utf-8", "replace")
    found = _KUBECTL_BLOCK.search(text) or _ERROR.search(text)
    lines = [line for line in text.splitlines() if line.strip()]
    wanted = found[1] if found is not None else lines[-1] if lines else "no reason given"
    if log := _KUBECTL_LOG.fullmatch(wanted.strip()):
        wanted = log[1].replace('\\"', '"')
    reason = printable(" ".join(wanted.split()))
    return reason if len(reason) <= _MAX_REASON_CHARS else f"{reason[:_BEGINNING_CHARS]} ... {reason[-_END_CHARS:]}"
