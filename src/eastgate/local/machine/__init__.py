"""The machinery of a mesh on one laptop: processes, addresses, sockets and calls. It knows nothing about policies."""
