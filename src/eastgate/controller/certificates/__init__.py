"""The CA of a cluster, shared by the replicas of the control plane, and the certificates that they serve with."""
