"""What is understood and probably not meant so: rules without effect, targets that select nothing, open doors.

Start reading at `run.py`, which lists the checks; each family of checks is a file.
"""

from eastgate.lint.model import Finding
from eastgate.lint.run import lint

__all__ = ["Finding", "lint"]
