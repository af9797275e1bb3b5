"""Layers: modules over the functions of `minigrad.nn.functional`."""
