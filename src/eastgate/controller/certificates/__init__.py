"""The CA of a cluster, which all replicas of the control plane share, and the certificates of their servers."""
