"""The parts of the Model Context Protocol that a gateway reads and writes, without any network access."""
