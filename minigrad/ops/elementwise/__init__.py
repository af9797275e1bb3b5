"""Element by element."""
