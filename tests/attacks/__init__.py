"""Everything that was ever tried to get past a proxy, by kind: lists of tries, and what must come of each."""
