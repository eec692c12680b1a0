"""Reachability: the exact verdicts of all requests at once.

A good order to read the modules:

- `endings`: verdicts of requests, as decision lists
- `destinations`, with `workloads` and `gateways`: the destinations of requests
- `caller_sets`, with `numbering`: the callers
- `reachability`: every answer
- `searching`: requests that disprove a statement, or the proof that there is none
- `questions`: such a request as a question for `check`
- `differences`: changes between two sides
"""
