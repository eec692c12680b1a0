"""The benchmark: what a decision, a compile and a change cost, against real peers, in one run. See `__main__`."""
