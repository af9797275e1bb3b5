"""Models that several processes hold together: tensor, pipeline and sharded data parallelism, over MPI.

A model is divided in place by `parallelize(model, optimizer, mesh)`, and trained by a `Trainer` with `parallel=Layout(tensor=2, pipeline=2)`.
"""

from .collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    part,
    receive,
    reduce_scatter,
    replicated,
    send,
)
from .distributed_model import DistributedModel, parallelize
from .mesh import Layout, Mesh

__all__ = [
    "DistributedModel",
    "Layout",
    "Mesh",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "parallelize",
    "part",
    "receive",
    "reduce_scatter",
    "replicated",
    "send",
]
