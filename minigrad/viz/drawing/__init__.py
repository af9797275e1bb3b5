"""Scenes of shapes and how they are written, and the charts that are made of them."""
