"""Attacks in a cluster: objects that its users may create, and the effect on the controller."""
