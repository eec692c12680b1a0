"""What can be said about policies beyond one decision."""
