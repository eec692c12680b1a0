"""What every package stands on: diagnostics, records, regular expressions, caches, background tasks, HTTP."""
