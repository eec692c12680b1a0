"""The library: reads manifests and answers questions. `eastgate` exports it, and the command line is built on it."""
