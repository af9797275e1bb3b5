"""Softmax, convolution and pooling."""
