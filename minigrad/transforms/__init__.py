"""Functions that take a function and return another: its derivatives, or the same for a whole batch.

`reverse` differentiates by the recorded graph. `forward` (jvp) and `batching` (vmap) trace the function by shapes alone, and
interpret its graph; they are loaded when they are first used.
"""

from .reverse import grad, hessian, jacrev, recompute, value_and_grad, vjp

__all__ = ["grad", "hessian", "jacrev", "recompute", "value_and_grad", "vjp"]
