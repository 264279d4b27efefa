"""The two steps that run in the image, as plain functions.

Each becomes a component file of its own, of its own source alone, and so imports what it needs itself. A path
may be an address in a bucket: `gs://bucket/directory`, or
`abfss://container@account.dfs.core.windows.net/directory`.
"""

IMAGE = ("issue-summaries", "trainer:1")
"""Team whose registry has the image of both steps, and its name there; the Dockerfile here builds it."""


def copydata(source: str, directory: str, run: str = "") -> int:
    """Copy the initial checkpoint to where training goes on from, unless there is a checkpoint already.

    Args:
        source: the initial checkpoint, a file or a directory.
        directory: the directory of the checkpoints.
        run: the run that they are of, which then have a directory of their own below that.

    Returns:
        The step that training goes on from: 0 for the copy.
    """
    from ebbtide.in_pods.checkpoints import Checkpoints

    return Checkpoints(f"{directory.rstrip('/')}/{run}" if run else directory).seed(source).step


def train(data: str, directory: str, steps: int, every: int, run: str = "") -> float:
    """Fit a line to noisy points, one at a time, from the latest checkpoint on.

    Args:
        data: a CSV file with columns x and y, or a directory of such files.
        directory: the directory of the checkpoints.
        steps: number of steps of the training.
        every: number of steps between two checkpoints.
        run: the run that the checkpoints are of, as in `copydata`.

    Returns:
        The mean distance of the points from the line.
    """
    import csv
    import json
    import tempfile
    from pathlib import Path

    from ebbtide.in_pods.checkpoints import Checkpoints
    from ebbtide.in_pods.storage import copy

    rate = 0.05
    checkpoints = Checkpoints(f"{directory.rstrip('/')}/{run}" if run else directory)
    latest = checkpoints.latest()
    if latest is None:
        raise FileNotFoundError(f"There is no checkpoint in {directory}: copydata comes first.")
    print(f"Going on from step {latest.step} of {steps}.", flush=True)
    model = json.loads((latest.path / "model.json").read_text(encoding="utf-8"))
    points: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        copy(data, Path(folder))
        for file in sorted(Path(folder).rglob("*.csv")):
            with file.open(newline="", encoding="utf-8") as rows:
                points += [(float(row["x"]), float(row["y"])) for row in csv.DictReader(rows)]
    for step in range(latest.step + 1, steps + 1):
        # A step takes the same point whenever it is run: so does a run that was never interrupted.
        x, y = points[step % len(points)]
        error = model["slope"] * x + model["offset"] - y
        model["slope"] -= rate * error * x
        model["offset"] -= rate * error
        if step % every == 0 or step == steps:
            with checkpoints.saving(step) as folder:
                (folder / "model.json").write_text(json.dumps(model), encoding="utf-8")
    return sum(abs(model["slope"] * x + model["offset"] - y) for x, y in points) / len(points)
