"""Comparison of np-guard's netpol-analyzer with the oracle and with Eastgate, on generated clusters.

`make netpol` builds the program. The clusters contain only cases that it decides as upstream does. They have no pod
inside of a CIDR block, no pod in the host's network, and no two policies with one priority. They have no cluster
policies of the newer generation, no nodes as peers, and no port names in egress rules without peers.
"""
