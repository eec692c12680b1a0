"""The Model Context Protocol, as far as a gateway has to read and write it: pure, without any network."""
