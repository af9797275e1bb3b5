"""Graphs of computations: traced, laid out, drawn, and stepped through."""
