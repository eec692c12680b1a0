"""np-guard's netpol-analyzer beside the oracle of network policies, and beside Eastgate, on generated clusters.

`make netpol` builds the program. It is asked only about what it decides as upstream does: no pod is inside of a CIDR
block, no pod is of the host's network, no two policies have one priority, and there are no cluster policies of the
newer generation, no nodes as peers and no names of ports in egress rules that may have no peers.
"""
