"""Attacks on enforcement, by kind. Every try of every kind is made against every placement of `placements.py`."""
