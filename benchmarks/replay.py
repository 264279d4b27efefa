"""Replay synthetic traces: CPU seconds and peak memory, of both Python and Kueue.

Five teams borrow all of their quota from a cohort with fair sharing: at high load, Kueue looks for victims of
each waiting job among all that run. A single team has no others to reclaim from, and without priorities none
of its jobs preempts another.
"""

import csv
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from benchmarks.preview import measured
from benchmarks.queues import write_project

NODES, GPUS = 64, 8
CASES = (
    (10_000, 0.6, 5, ("",)),
    (10_000, 0.95, 5, ("",)),
    (100_000, 0.6, 5, ("",)),
    (100_000, 0.95, 1, ("",)),
    (10_000, 1.3, 1, ("ebbtide-low", "", "ebbtide-high")),
    (10_000, 1.3, 5, ("ebbtide-low", "", "ebbtide-high")),
)
"""Number of jobs, their mean demand as a share of all GPUs, teams, and priorities in turn."""
_MEAN = 3600.0


def declaration(teams: int) -> dict[str, object]:
    """Declare a pool of GPUs that teams share in a cohort."""
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
        "teams": [{"name": f"team-{index}"} for index in range(teams)],
    }


def trace(path: Path, count: int, load: float, teams: int, priorities: Sequence[str]) -> None:
    """Write jobs of one to four GPUs whose mean demand is a share of all GPUs."""
    random = Random(1)  # noqa: S311
    sizes, weights = (1, 2, 4), (6, 3, 1)
    mean = sum(a * b for a, b in zip(sizes, weights, strict=True)) / sum(weights)
    gap = mean * _MEAN / (load * NODES * GPUS)
    at = 0.0
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("submit", "duration", "pods", "gpus", "queue", "priority"))
        for number in range(count):
            at += random.expovariate(1 / gap)
            (gpus,) = random.choices(sizes, weights)
            seconds = random.expovariate(1 / _MEAN)
            team, priority = random.randrange(teams), priorities[number % len(priorities)]
            rows.writerow((f"{at:.1f}", f"{seconds:.1f}", 1, gpus, f"team-{team}/t4", priority))


def main() -> None:
    """Print a row for each case."""
    build = (sys.executable, "-m", "ebbtide_rehearsal.tools", "kueue-replay")
    subprocess.run(build, stdout=subprocess.DEVNULL, check=True)
    print(f"{'jobs':>8} {'load':>5} {'teams':>5} {'priorities':>10} {'CPU':>8} {'memory':>9}")
    with tempfile.TemporaryDirectory() as directory:
        for count, load, teams, priorities in CASES:
            write_project(directory, declaration(teams))
            file = Path(directory, "trace.csv")
            trace(file, count, load, teams, priorities)
            seconds, memory = measured(
                *("-m", "ebbtide", "replay", str(file), "bench", "--cwd", directory),
                *("--seeds", "1", "--format", "json"),
            )
            case = f"{count:>8} {load:>5.0%} {teams:>5} {len(priorities):>10}"
            print(f"{case} {seconds:>6.1f} s {memory:>5.0f} MiB")


if __name__ == "__main__":
    main()
