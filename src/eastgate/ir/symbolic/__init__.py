"""Layers as symbols: what can be said of requests that are not, or not wholly, known.

Read `stages` (the one reading of the five stages), `trees`, `partial` (layers to decision trees), `judging`
(three-valued judgements), `completions` (allow only if every completion does), `cells` and `callers` (what no rule
tells apart), `witnesses` (requests that show a finding).
"""
