"""Reachability: all answers at once, exactly.

Read `endings` (verdicts of requests, as decision lists), `callers`, `caller_sets`, `requests` and `destinations` (what
falls into cells that no rule tells apart), `reachability` (every answer, by cell), `searching` (requests that show a
statement to be false, or that there is none), `questions` (such a request as somebody would ask about it). Two sets of
answers are compared in `differences`, with `pairing` (what is on both sides), `opposition` (two decision lists) and
`confirming` (both engines are asked).
"""
