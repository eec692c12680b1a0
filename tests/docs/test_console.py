"""Every console block of the documentation shows the real output. `pytest tests/docs --update` writes that output."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.docs.blocks import PAGES, ROOT, Step, steps, with_outputs
from tests.docs.comparing import is_same, shortened
from tests.docs.terminal import Terminal, terminal


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_prints_the_documented_output(page: Path, tmp_path: Path, update: bool) -> None:
    text = page.read_text(encoding="utf-8")
    found = list(steps(text))
    others: dict[Step, str] = {}
    examples = any("examples/" in (step.command or "") for step in found)
    with terminal(tmp_path, examples=examples, files=page.with_suffix("")) as opened:
        for step in found:
            printed = _printed(step, opened, update)
            if not is_same(step.output, printed, anywhere=step.command is None):
                others[step] = shortened(step.output, printed)
                if step.command is None and not update:
                    break  # the wait was long enough
    if update and others:
        page.write_text(with_outputs(text, others), encoding="utf-8")
        return
    differing = [f"{page.name}:{step.line}: $ {step.command}\n{printed}" for step, printed in others.items()]
    assert not differing, "if this output is right, run `pytest tests/docs --update`:\n\n" + "\n\n".join(differing)


def _printed(step: Step, opened: Terminal, update: bool) -> str:
    if step.command is not None:
        return opened.run(step.command)
    return opened.settled_output() if update else opened.output_when(partial(is_same, step.output, anywhere=True))


def test_the_first_page_has_commands() -> None:
    assert {"README.md", "docs/start/first-policy.md", "docs/guides/mesh.md"} <= {
        str(page.relative_to(ROOT)) for page in PAGES
    }
