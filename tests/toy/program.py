"""`eastgate`, with the toy registered by its one line: for commands that are processes of their own."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from eastgate import dialects
from eastgate.cli import main
from tests import toy

dialects.DIALECTS = (*dialects.DIALECTS, toy.DIALECT)
main(prog_name="eastgate")
