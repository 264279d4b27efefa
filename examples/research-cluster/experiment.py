"""One experiment of the sweep, as it runs in the image: a linear model, trained with the parameters of its
index, with its result in the shared volume. The image needs only Ebbtide."""

import json
import os
import random
import sys
from pathlib import Path

from ebbtide.work.sweeps import parameters


def loss(seed: int, rate: float, steps: int = 400) -> float:
    """Return the distance of a line from its points after training with a learning rate and a seed."""
    chance = random.Random(seed)
    points = [(x, 2 * x + chance.gauss(0, 0.05)) for x in (chance.uniform(-1, 1) for _ in range(50))]
    slope = chance.uniform(-5, 5)
    for _ in range(steps):
        x, y = chance.choice(points)
        slope -= rate * (slope * x - y) * x
    return sum((slope * x - y) ** 2 for x, y in points) / len(points)


def main(results: Path) -> None:
    """Run the experiment of this index, unless its result exists."""
    chosen = parameters()
    file = results / f"{os.environ['JOB_COMPLETION_INDEX']}.json"
    if file.exists():
        return
    result = {**chosen, "loss": loss(int(chosen["seed"]), float(chosen["rate"]))}
    results.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
