"""Everything that runs in the cluster."""
