"""What runs in the image: the two steps as plain functions.

Each becomes a component file of its own, of its own source alone, and so imports what it needs itself.
"""


def copydata(source: str, directory: str) -> int:
    """Copy the initial checkpoint to where training goes on from, unless it was copied already.

    Args:
        source: the initial checkpoint, a directory.
        directory: where this run's checkpoints are.

    Returns:
        The step that training goes on from: 0 for the copy.
    """
    from ebbtide.workloads.checkpoints import Checkpoints

    return Checkpoints(directory).seed(source).step


def train(directory: str, steps: int, every: int) -> float:
    """Fit a line to noisy points, one at a time, from the latest checkpoint on.

    Args:
        directory: where this run's checkpoints are.
        steps: how many steps the training has.
        every: how many steps lie between two checkpoints.

    Returns:
        How far the line is from the one that the points were made of.
    """
    import json
    import random

    from ebbtide.workloads.checkpoints import Checkpoints

    true_slope, true_offset, rate = 3.0, -1.0, 0.05
    checkpoints = Checkpoints(directory)
    latest = checkpoints.latest()
    if latest is None:
        raise FileNotFoundError(f"There is no checkpoint in {directory}: copydata comes first.")
    print(f"Going on from step {latest.step} of {steps}.", flush=True)
    model = json.loads((latest.path / "model.json").read_text(encoding="utf-8"))
    for step in range(latest.step + 1, steps + 1):
        # A step sees the same point whenever it is run: so does a run that was never interrupted.
        chance = random.Random(step)
        x = chance.uniform(-1, 1)
        y = true_slope * x + true_offset + chance.gauss(0, 0.1)
        error = model["slope"] * x + model["offset"] - y
        model["slope"] -= rate * error * x
        model["offset"] -= rate * error
        if step % every == 0 or step == steps:
            with checkpoints.saving(step) as folder:
                (folder / "model.json").write_text(json.dumps(model), encoding="utf-8")
    return abs(model["slope"] - true_slope) + abs(model["offset"] - true_offset)
