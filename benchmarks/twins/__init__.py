"""The same models in minigrad and in other libraries, from the same weights and batches. The benchmarks time and compare them."""
