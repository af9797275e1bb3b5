"""What `benchmarks.imported` measures, a file for each real model or peer."""
