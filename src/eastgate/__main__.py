"""`python -m eastgate`."""

from eastgate.cli import main

main()
