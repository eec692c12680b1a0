"""YAML with positions, as kubectl reads it."""
