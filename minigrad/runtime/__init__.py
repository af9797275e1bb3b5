"""Threads, memory and processes: what a computation runs on. Nothing here knows a model."""

from .process_group import ProcessGroup, process_group, single_process
from .threads import limit_threads, run_parallel, single_threaded_blas, thread_count

__all__ = [
    "ProcessGroup", "limit_threads", "process_group", "run_parallel", "single_process", "single_threaded_blas",
    "thread_count",
]  # fmt: skip
