"""The mesh: which place in `data x pipeline x tensor` a rank has, and the groups in which it communicates."""

from __future__ import annotations

import dataclasses

from ..errors import ArgumentError
from ..runtime.process_group import ProcessGroup, process_group

__all__ = ["Layout", "Mesh", "check_alike", "part_edges", "part_sizes"]

SCHEDULES = ("1f1b", "gpipe")


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a model is divided among ranks; those left after `tensor` and `pipeline` divide the rows of each batch.

    `shard` divides what these data-parallel ranks would hold alike: 1 the state of the optimiser, 2 gradients as well, 3
    parameters as well (ZeRO). A pipeline cuts each batch into `microbatches`, twice as many as there are stages unless
    given, in the order of `schedule`, "1f1b" or "gpipe". With `recompute`, blocks keep no activations for the backward.
    `stages` are the numbers of blocks of each stage; they are balanced by measured cost unless given. `sequence` divides
    norms and dropouts among tensor-parallel ranks, along the sequence.
    """

    tensor: int = 1
    pipeline: int = 1
    shard: int = 0
    microbatches: int | None = None
    schedule: str = "1f1b"
    recompute: bool = False
    stages: tuple[int, ...] | None = None
    sequence: bool = True

    def __post_init__(self) -> None:
        for name in ("tensor", "pipeline", "microbatches"):
            value = getattr(self, name)
            if not (value is None and name == "microbatches") and (type(value) is not int or value < 1):
                raise ArgumentError(f"Layout: {name} cannot be used", "a whole number from 1", repr(value))
        if self.shard not in (0, 1, 2, 3):
            raise ArgumentError("Layout: shard cannot be used", "0, 1, 2 or 3", repr(self.shard))
        if self.schedule not in SCHEDULES:
            raise ArgumentError("Layout: there is no such schedule", " or ".join(SCHEDULES), repr(self.schedule))
        if self.stages is not None and (len(self.stages) != self.pipeline or min(self.stages) < 1):
            raise ArgumentError(
                "Layout: stages are blocks of each stage", f"{self.pipeline} counts from 1", self.stages
            )

    @property
    def is_plain(self) -> bool:
        """Whether it is data parallelism alone."""
        return self.tensor == self.pipeline == 1 and not self.shard and not self.recompute

    @property
    def model_size(self) -> int:
        """How many ranks hold one model together."""
        return self.tensor * self.pipeline

    @property
    def pieces(self) -> int:
        """How many microbatches a batch is cut into."""
        return self.microbatches or (2 * self.pipeline if self.pipeline > 1 else 1)


class Mesh:
    """The place of this rank in `data x pipeline x tensor`, tensor fastest, and its groups.

    >>> mesh = Mesh(Layout())
    >>> mesh.data, mesh.pipeline, mesh.tensor, mesh.world.size
    (0, 0, 0, 1)
    """

    def __init__(self, layout: Layout, world: ProcessGroup | None = None):
        self.layout, self.world = layout, process_group() if world is None else world
        world = self.world
        check_alike(layout, world)
        check_factors(layout, world)
        self.shape = (world.size // layout.model_size, layout.pipeline, layout.tensor)
        self.data, self.pipeline, self.tensor = self.place(world.rank)
        self.data_group = world.split(self.pipeline * layout.tensor + self.tensor)
        self.pipeline_group = world.split(self.data * layout.tensor + self.tensor)
        self.tensor_group = world.split(self.data * layout.pipeline + self.pipeline)
        self.model_group = world.split(self.data)

    @classmethod
    def imagined(cls, layout: Layout, ranks: int, rank: int) -> Mesh:
        """The mesh as a rank of so many would see it, without any of the others: to plan with."""
        mesh = cls.__new__(cls)
        mesh.layout, mesh.world = layout, ProcessGroup()
        mesh.shape = (ranks // layout.model_size, layout.pipeline, layout.tensor)
        mesh.data, mesh.pipeline, mesh.tensor = mesh.place(rank)
        mesh.data_group = mesh.pipeline_group = mesh.tensor_group = mesh.model_group = mesh.world
        return mesh

    def place(self, rank: int) -> tuple[int, int, int]:
        """The indices (data, pipeline, tensor) of a rank."""
        rest, tensor = divmod(rank, self.layout.tensor)
        data, pipeline = divmod(rest, self.layout.pipeline)
        return data, pipeline, tensor

    @property
    def is_last(self) -> bool:
        """Whether this rank has the last stage."""
        return self.pipeline == self.layout.pipeline - 1

    @property
    def counts_loss(self) -> bool:
        """Whether this rank's terms of the loss are counted: others of its model compute the same, or no loss at all."""
        return self.is_last and self.tensor == 0

    def traffic(self) -> dict[str, dict[str, int]]:
        """The bytes of each kind of collective on this rank, by group."""
        groups = {"data": self.data_group, "pipeline": self.pipeline_group, "tensor": self.tensor_group}
        return {name: dict(group.traffic) for name, group in groups.items()}


def check_alike(layout: Layout, world: ProcessGroup) -> None:
    """Refuse ranks that were given other layouts; each rank calls it before anything else."""
    given = world.all_gather(dataclasses.asdict(layout))
    other = next((rank for rank, one in enumerate(given) if one != given[0]), None)
    if other is not None:
        unlike = [f"{name} {given[other][name]}" for name in given[0] if given[other][name] != given[0][name]]
        expected = ", ".join(f"{name} {given[0][name]}" for name in given[0] if given[other][name] != given[0][name])
        raise ArgumentError(
            f"rank {other} has another layout than rank 0", expected, ", ".join(unlike), "give every rank the same"
        )


def check_factors(layout: Layout, world: ProcessGroup) -> None:
    """Refuse ranks that do not factor."""
    if world.size % layout.model_size:
        likely = [f"-n {layout.model_size * n}" for n in (1, 2)]
        raise ArgumentError(
            f"tensor={layout.tensor} x pipeline={layout.pipeline} does not divide the ranks",
            f"a multiple of {layout.model_size} ranks",
            f"{world.size}",
            f"start mpiexec with {' or '.join(likely)}, or choose factors of {world.size}",
        )


def part_edges(whole: int, parts: int) -> list[tuple[int, int]]:
    """Where each of so many parts of `whole` things begins and ends; they differ by one at most.

    >>> part_edges(5, 2)
    [(0, 3), (3, 5)]
    """
    sizes = part_sizes(whole, parts)
    return [(sum(sizes[:i]), sum(sizes[: i + 1])) for i in range(parts)]


def part_sizes(whole: int, parts: int) -> list[int]:
    """The sizes of these parts, larger ones first."""
    return [whole // parts + (i < whole % parts) for i in range(parts)]
