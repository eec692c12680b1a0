"""The benchmark: the cost of a decision, a compile and a change, against real peers, in one run. See `__main__`."""
