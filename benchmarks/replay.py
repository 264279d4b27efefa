"""Replay synthetic traces: CPU seconds and peak memory, of both Python and Kueue.

Five teams borrow all of their quota from a cohort with fair sharing: at high load, Kueue looks for victims of
each waiting job among all that run.
"""

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

from benchmarks.preview import HERE
from benchmarks.queues import measured

NODES, GPUS, TEAMS = 64, 8, 5
CASES = ((10_000, 0.6), (10_000, 0.95), (100_000, 0.6))
"""Number of jobs, and their mean demand as a share of all GPUs."""
_MEAN = 3600.0


def declaration() -> dict[str, object]:
    """Declare a pool of GPUs that five teams share in a cohort."""
    t4 = {"type": "nvidia-tesla-t4", "count": 4}
    return {
        "name": "train",
        "owner": "platform",
        "cloud": {"kind": "gke", "project": "acme-ml", "location": "us-central1-a"},
        "pools": [
            {"name": "system", "role": "system", "machine": "e2-standard-4", "nodes": {"max": 3}},
            {
                "name": "t4",
                "machine": "n1-standard-16",
                "accelerator": t4,
                "capacity": "on-demand",
                "nodes": {"max": NODES * GPUS // 4},
            },
        ],
        "queues": [{"name": "t4", "pools": ["t4"]}],
        "teams": [{"name": f"team-{index}"} for index in range(TEAMS)],
    }


def trace(path: Path, count: int, load: float) -> None:
    """Write jobs of one to four GPUs whose mean demand is a share of all GPUs."""
    random = Random(1)  # noqa: S311
    sizes, weights = (1, 2, 4), (6, 3, 1)
    mean = sum(a * b for a, b in zip(sizes, weights, strict=True)) / sum(weights)
    gap = mean * _MEAN / (load * NODES * GPUS)
    at = 0.0
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("submit", "duration", "pods", "gpus", "queue"))
        for _ in range(count):
            at += random.expovariate(1 / gap)
            (gpus,) = random.choices(sizes, weights)
            seconds = random.expovariate(1 / _MEAN)
            team = random.randrange(TEAMS)
            rows.writerow((f"{at:.1f}", f"{seconds:.1f}", 1, gpus, f"team-{team}/t4"))


def main() -> None:
    """Print a row for each case."""
    build = (sys.executable, "-m", "ebbtide_rehearsal.tools", "kueue-replay")
    subprocess.run(build, stdout=subprocess.DEVNULL, check=True)
    print(f"{'jobs':>8} {'load':>5} {'CPU':>8} {'memory':>9}")
    with tempfile.TemporaryDirectory() as directory:
        project = {"name": "ebbtide", "runtime": "python", "main": str(HERE.parent)}
        Path(directory, "Pulumi.yaml").write_text(json.dumps(project), encoding="utf-8")
        stack = {"config": {"ebbtide:cluster": declaration()}}
        Path(directory, "Pulumi.bench.yaml").write_text(json.dumps(stack), encoding="utf-8")
        for count, load in CASES:
            file = Path(directory, "trace.csv")
            trace(file, count, load)
            seconds, memory = measured(
                *("-m", "ebbtide", "replay", str(file), "bench", "--cwd", directory),
                *("--seeds", "1", "--format", "json"),
            )
            print(f"{count:>8} {load:>5.0%} {seconds:>6.1f} s {memory:>5.0f} MiB")


if __name__ == "__main__":
    main()
