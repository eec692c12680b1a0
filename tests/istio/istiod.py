"""istiod's own code as a process, which answers questions about one cluster after the other."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.programs import find

_MOST_QUESTIONS = 400  # questions to one process: each leaks some megabytes
_STOP_SECONDS = 15


class Istiod:
    """A program that runs an istiod for each question. With `ambient`, it also configures ztunnels."""

    def __init__(self, folder: Path, *, ambient: bool = False) -> None:
        self._log = folder / f"istiod{'-ambient' if ambient else ''}.log"
        self._environment = {**os.environ, "PILOT_ENABLE_AMBIENT": str(ambient).lower()}
        self._process: subprocess.Popen[str] | None = None
        self._asked = 0

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return istiod's configuration for a cluster. `error` says why it cannot configure it."""
        if self._asked % _MOST_QUESTIONS == 0:
            self.stop()
        self._asked += 1
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        for line in process.stdout:  # istiod may log before its log is redirected
            if line.startswith("{"):
                answer: dict[str, Any] = json.loads(line)
                return answer
        raise AssertionError(f"istiod ended:\n{self._log.read_text()[-2000:]}")

    def stop(self) -> None:
        """Stop the process; the next question starts another."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self) -> subprocess.Popen[str]:
        with self._log.open("a") as log:
            return subprocess.Popen(
                [find("istio")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self._environment,
            )
