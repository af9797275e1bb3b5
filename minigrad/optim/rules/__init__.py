"""The rules of optimisers: how each changes a weight, given its gradient and its state."""
