"""Symbolic evaluation of layers for requests with unknown attributes.

A good order to read the modules:

- `stages`: all stages in one ordered form
- `trees` and `partial`: partial evaluation of layers to decision trees
- `judging` and `completions`: three-valued evaluation, and ALLOW only if every completion allows
- `cells` and `callers`: sets of values and of callers that no rule distinguishes
- `witnesses`: requests that show a finding
"""
