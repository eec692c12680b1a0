"""Attacks on enforcement, by kind. Every try of every kind runs against every placement of `placements.py`."""
