"""The library: manifests in, answers out. What `eastgate` exports, and what the command line stands on."""
