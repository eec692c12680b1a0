"""JSON with positions."""
