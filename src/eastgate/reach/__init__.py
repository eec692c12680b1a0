"""Reachability: all answers at once, exactly.

Read `endings` (verdicts of requests, as decision lists), `destinations` with `workloads` and `gateways` (what is
reached), `caller_sets` with `numbering` (by whom), `reachability` (every answer), `searching` (requests that show a
statement to be false, or that there is none), `questions` (such a request as somebody would ask about it),
`differences` (what changes between two sides).
"""
