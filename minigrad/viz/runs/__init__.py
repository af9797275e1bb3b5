"""Training runs: their curves, their report, and the server of a live page."""
