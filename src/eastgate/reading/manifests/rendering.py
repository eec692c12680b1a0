"""Renders kustomizations: runs `kustomize`, or the one in `kubectl`, with limits of time and size."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import KUSTOMIZE_FAILED

_KUBECTL_LOG = regex(r'[A-Z]\d{4} [\d:.]+ +\d+ \S+\] ".*?" err="(.*)"')
_SECONDS = 120
_MOST_BYTES = 256 * 1024 * 1024


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

    def render(self, folder: str, reporter: Reporter) -> bytes | None:
        """Render a kustomization; None, and a finding, where that fails."""
        program, words = self._commands[0]
        command = " ".join((os.path.basename(program), *words, printable(folder)))
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
            try:
                process = subprocess.Popen(  # noqa: S603 - a program from the PATH, and a path that exists
                    [program, *words, "--", os.path.abspath(folder)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=env,
                    start_new_session=True,
                )
            except OSError as error:
                reporter.report(KUSTOMIZE_FAILED, f"`{command}` cannot be run: {printable(str(error.strerror))}")
                return None
            content, problem = _output(process)
            if problem is None and process.returncode != 0:
                errors.seek(0)
                problem = f"fails: {_reason(errors.read(64 * 1024))}"
        if problem is not None:
            reporter.report(KUSTOMIZE_FAILED, f"`{command}` {problem}", help=f"run it to see why: {command}")
            return None
        return content


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
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    wanted = next(
        (line for line in lines if line.lower().startswith("error")), lines[-1] if lines else "no reason given"
    )
    wanted = _KUBECTL_LOG.sub(r"\1", wanted)
    return printable(wanted.removeprefix("Error:").removeprefix("error:").strip()[:500])
