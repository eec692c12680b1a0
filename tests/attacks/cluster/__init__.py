"""Attacks on what runs in a cluster: objects that its users may create, and what the controller makes of them."""
