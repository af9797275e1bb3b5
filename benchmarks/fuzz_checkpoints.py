"""Read millions of spoilt checkpoint files: each must be refused with a CheckpointError, or be a whole one by chance.

    python -m benchmarks.fuzz_checkpoints [--cases 5000000] [--quick] [--json]

Half of the ways to spoil a file leave its checksum right, so that what is behind it is tried as well. Every case is
made from its number, so a failure can be looked at again. It resumes where it stopped.
"""

from __future__ import annotations

import sys

from .soak import Soak, helpers

BATCH = 5000


def main() -> int:
    soak = Soak("fuzz_checkpoints", __doc__, {"cases": 5_000_000}, {"cases": 10_000})
    helpers()
    from support import hostile_checkpoints as hostile  # type: ignore[import-not-found]
    from support.folders import in_memory  # type: ignore[import-not-found]

    from minigrad.errors import CheckpointError
    from minigrad.train import read_checkpoint

    with in_memory() as place:
        path = place / "case"
        content = hostile.small_checkpoint(path)

        def read_some(first: int) -> int:
            with open(path, "r+b", buffering=0) as file:
                for seed in range(first, first + BATCH):
                    spoilt = hostile.spoilt(content, seed)
                    file.seek(0)
                    file.truncate()
                    file.write(spoilt)
                    try:
                        found = read_checkpoint(path)
                    except CheckpointError:
                        continue
                    except Exception as error:
                        raise AssertionError(f"case {seed}: {type(error).__name__}: {error}") from error
                    assert sum(a.nbytes for a in found.tensors.values()) <= len(spoilt), f"case {seed} grew"
            return BATCH

        soak.run("cases", read_some, "spoilt files")
    return soak.report()


if __name__ == "__main__":
    sys.exit(main())
