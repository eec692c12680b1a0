"""Other languages for the one meaning: what a target cannot express it refuses, and never widens."""
