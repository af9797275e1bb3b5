"""Kill training processes with SIGKILL, hundreds of times, and compare what becomes of them with runs that were left alone.

    python -m benchmarks.kill_soak [--training 300] [--saving 1000] [--quick] [--json]

Every combination of optimiser, schedule and sampler has its turn, in an order that does not favour any; each run is
killed one to three times. Then processes are killed while they save. It resumes where it stopped.
"""

from __future__ import annotations

import random
import sys

from .soak import Soak, helpers


def main() -> int:
    soak = Soak("kill_soak", __doc__, {"training": 300, "saving": 1000}, {"training": 3, "saving": 20})
    helpers()
    from support import killable_training as training  # type: ignore[import-not-found]
    from support.crashes import finish, kill, kill_while_saving, outcome  # type: ignore[import-not-found]
    from support.folders import in_memory  # type: ignore[import-not-found]

    mixtures = [(o, s, d) for o in training.OPTIMIZERS for s in training.SCHEDULES for d in training.SAMPLERS]
    random.Random(0).shuffle(mixtures)

    def killed_in_training(number: int) -> int:
        mixture = mixtures[number % len(mixtures)]
        chance = random.Random()
        kills = chance.randint(1, 3)
        with in_memory() as place:
            for _ in range(kills):
                kill(place / "killed", mixture, after=chance.uniform(0, 0.3))
            finish(place / "killed", mixture)
            training.trainer(place / "whole", *mixture).train()
            assert outcome(place / "killed") == outcome(place / "whole"), f"{mixture} differs after {kills} kills"
        return kills

    def killed_while_saving(number: int) -> int:
        kills = 20
        with in_memory() as place:
            for _ in range(kills):
                kill_while_saving(place)
        return kills

    soak.run("training", killed_in_training, "killing while training")
    soak.run("saving", killed_while_saving, "killing while saving")
    return soak.report(mixtures=len(mixtures))


if __name__ == "__main__":
    sys.exit(main())
