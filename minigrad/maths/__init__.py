"""Elementary functions that numba inlines and LLVM vectorises, for hand-written kernels and for generated loops, a module a dtype."""
