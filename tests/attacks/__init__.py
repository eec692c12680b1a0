"""Everything that was ever tried to get past Eastgate, by kind: lists of tries, and what must come of each."""
