"""`eastgate` with the toy dialect registered by one line, for commands in processes of their own."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from eastgate import dialects
from eastgate.cli import main
from tests import toy

dialects.DIALECTS = (*dialects.DIALECTS, toy.DIALECT)
main(prog_name="eastgate")
