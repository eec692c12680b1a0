"""The processes that evaluate Rego: started when first needed, ended when one takes too long."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path

from eastgate.authconfig.context import Patience

__all__ = ["RegoEngine", "RegoFailure", "shared_engine"]

_WORKER = Path(__file__).with_name("rego_worker.py")
_ENVIRONMENT = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH")
MAX_ANSWER = 1 << 20
_FITS = 1 << 12  # bytes that an empty pipe takes at once on every system
START = 10.0  # seconds that a process may take to be there
_REMEMBERED = 30.0  # seconds
_MOST_REMEMBERED = 1000


class RegoFailure(Exception):  # noqa: N818 - an answer of sorts, which denies
    """There is no answer: the module errs, or takes too long. The message repeats nothing of the request."""


class _Worker:
    """One process. Not for two threads at once."""

    def __init__(self) -> None:
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        self._process = subprocess.Popen(  # noqa: S603 - our own file, run by our own interpreter
            [sys.executable, "-P", str(_WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self._starting = True

    def start(self) -> None:
        """Wait until it can answer, which takes no time of a question; raises TimeoutError or OSError."""
        if self._starting:
            assert self._process.stdout is not None  # noqa: S101 - a pipe
            self._line(self._process.stdout.fileno(), time.monotonic() + START)
            self._starting = False

    def ask(self, question: bytes, deadline: float) -> bytes:
        """One line for one line; raises TimeoutError or OSError, after which the process is of no use."""
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: S101, PT018 - both are pipes
        if len(question) < _FITS:
            self._send(question)
            answer = self._line(self._process.stdout.fileno(), deadline)
        else:  # a long question fills the pipe, and a process that hangs never empties it
            sender = threading.Thread(target=self._send, args=(question,), daemon=True)
            sender.start()
            answer = self._line(self._process.stdout.fileno(), deadline)
            sender.join(1)
        return answer

    def _send(self, question: bytes) -> None:
        try:
            assert self._process.stdin is not None  # noqa: S101 - a pipe
            self._process.stdin.write(question + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            return  # it is gone, which the reader notices

    @staticmethod
    def _line(descriptor: int, deadline: float) -> bytes:
        read = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while not read.endswith(b"\n"):
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise TimeoutError
                chunk = os.read(descriptor, 1 << 16)
                if not chunk:
                    raise BrokenPipeError
                read += chunk
                if len(read) > MAX_ANSWER:
                    raise BrokenPipeError
        return bytes(read)

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue


class RegoEngine:
    """Evaluates Rego in at most `processes` processes, all modules of one scheme for at most `timeout` seconds.

    What has taken too long is not tried again for a while: one question may lead to many places that ask the same.
    """

    def __init__(self, timeout: float = 1.0, processes: int = 4) -> None:
        self._timeout = timeout
        self._free = threading.BoundedSemaphore(processes)
        self._idle: list[_Worker] = []
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._slow: OrderedDict[bytes, float] = OrderedDict()

    def ask(
        self, module: str, query: str, input_: Mapping[str, object], patience: Patience | None = None
    ) -> Mapping[str, object]:
        """The bindings of a query over a module. Raises RegoFailure."""
        question = json.dumps({"module": module, "query": query, "input": input_}).encode("ascii")
        patience = patience or Patience()
        if patience.spent >= self._timeout or self._was_slow(question):
            raise self._too_slow()
        if not self._free.acquire(timeout=self._timeout - patience.spent):
            raise RegoFailure("too many policies are being evaluated")
        try:
            worker = self._worker()
            began = None
            try:
                worker.start()
                began = time.monotonic()
                answer = json.loads(worker.ask(question, began + self._timeout - patience.spent))
            except TimeoutError:
                worker.end()
                if began is None:
                    raise RegoFailure("its engine does not start") from None
                self._remember(question)
                raise self._too_slow() from None
            except (OSError, ValueError):
                worker.end()
                raise RegoFailure("it breaks the engine") from None
            except BaseException:
                worker.end()
                raise
            finally:
                patience.spent += time.monotonic() - began if began is not None else 0.0
            with self._lock:
                self._idle.append(worker)
        finally:
            self._free.release()
        if "error" in answer:
            raise RegoFailure(str(answer["error"]))
        bindings = answer["bindings"]
        return bindings if isinstance(bindings, dict) else {}

    def _too_slow(self) -> RegoFailure:
        return RegoFailure(f"it takes longer than {self._timeout:g} s")

    def _was_slow(self, question: bytes) -> bool:
        with self._lock:
            return self._slow.get(hashlib.sha256(question).digest(), 0.0) > time.monotonic()

    def _remember(self, question: bytes) -> None:
        with self._lock:
            self._slow[hashlib.sha256(question).digest()] = time.monotonic() + _REMEMBERED
            while len(self._slow) > _MOST_REMEMBERED:
                self._slow.popitem(last=False)

    def _worker(self) -> _Worker:
        with self._lock:
            if self._owner != os.getpid():  # after a fork, the processes are the parent's
                self._owner, self._idle = os.getpid(), []
            if self._idle:
                return self._idle.pop()
        return _Worker()

    def close(self) -> None:
        """End the processes. The next question starts new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        if self._owner == os.getpid():
            for worker in idle:
                worker.end()


_shared: RegoEngine | None = None
_lock = threading.Lock()


def shared_engine() -> RegoEngine:
    """The engine of this process, which ends with it."""
    global _shared
    with _lock:
        if _shared is None:
            _shared = RegoEngine()
            atexit.register(_shared.close)
        return _shared
