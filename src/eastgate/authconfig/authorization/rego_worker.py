"""Evaluates Rego in a process of its own, so that whatever a module does to the engine ends with that process.

The engine has no limit of time or memory, and some texts crash it. This file is run as a script: it imports nothing
of Eastgate, says `ready`, and then answers each JSON object on a line with one.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections import OrderedDict
from typing import Any

MEMORY = 768 << 20
"""Bytes that the process may take. Its allocator maps more than it uses, so the limits of the system do not help."""
KEPT = 256
_WATCHED = 0.02  # seconds between two looks


def compiled(engine: Any, module: str, query: str) -> tuple[Any, Any]:
    """An interpreter with the module in it, and the query ready to run. Raises where the module is none."""
    interpreter = engine.Interpreter()
    interpreter.log_level = engine.LogLevel.NONE
    interpreter.strict_built_in_errors = True  # or else `not f(x)` would hold where f errs
    interpreter.add_module("module.rego", module)
    bundle = interpreter.build(query, [])
    if not bundle.ok():
        raise ValueError("it does not compile")
    return interpreter, bundle


def answer(engine: Any, held: OrderedDict[tuple[str, str], tuple[Any, Any]], asked: dict[str, Any]) -> object:
    """The bindings of the query; without an input the module is compiled and run on an empty one."""
    key = (asked["module"], asked["query"])
    ready = held.pop(key, None) or compiled(engine, *key)
    interpreter, bundle = ready
    interpreter.set_input_term(json.dumps(asked["input"], ensure_ascii=True))
    output = interpreter.query_bundle(bundle)
    if not output.ok():
        raise ValueError("it has no single answer")
    bindings = output.results[0].bindings if output.results else {}
    held[key] = ready
    while len(held) > KEPT:
        held.popitem(last=False)
    return bindings


def watch() -> None:
    """End the process when it takes too much memory. The engine runs without the lock of Python, so this runs too."""
    unit = 1 if sys.platform == "darwin" else 1024
    while resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit < MEMORY:
        time.sleep(_WATCHED)
    os._exit(1)


def main() -> None:
    """Answer until there is no more input."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.Thread(target=watch, daemon=True).start()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the engine prints; only answers may be read as such
    import regopy as engine

    answers.write("ready\n")
    answers.flush()
    held: OrderedDict[tuple[str, str], tuple[Any, Any]] = OrderedDict()
    for line in sys.stdin:
        try:
            said: dict[str, object] = {"bindings": answer(engine, held, json.loads(line))}
        except Exception as error:  # all of it means that there is no answer
            said = {"error": f"{type(error).__name__}: {error}"[:2000]}
        answers.write(json.dumps(said) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
