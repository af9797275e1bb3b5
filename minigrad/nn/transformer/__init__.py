"""What transformers are made of: attention, positions, masks, blocks, key-value caches."""
