"""Products, decompositions and functions of matrices."""
