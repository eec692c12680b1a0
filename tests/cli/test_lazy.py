"""What a command does not need is not imported: starting is most of the time of a short command."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import SHOP

CHECK = ["check", "-f", str(SHOP), "--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "8080"]


@pytest.mark.parametrize("words", [["--help"], ["up", "--help"], ["call", "--help"], ["why", "--help"], CHECK])
def test_the_mesh_is_imported_only_to_run_it(words: list[str]) -> None:
    program = (
        "import sys\nfrom eastgate.cli import main\n"
        f"try:\n    main({words!r})\nexcept SystemExit:\n    pass\n"
        "heavy = {'grpc', 'envoy', 'watchfiles', 'prometheus_client', 'rich', 'google.protobuf'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
