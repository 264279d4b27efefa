"""Compare a preview of many teams and queues with the recording of the same objects written by hand, and the
import of the workload side with that of the clients that a user would otherwise import.

Each figure is of a fresh process: its CPU time and its peak memory. The ratio is of preview to recording, by
pairs; the preview also has a cluster, cost, policy and output. Imports are CPU time beyond Python's start.
"""

import json
import statistics
import tempfile
from pathlib import Path

from benchmarks.preview import HERE, ROUNDS, cpu, measured

TEAMS = (10, 50, 200)
QUEUES = 10
MODULES = ("ebbtide.work", "ebbtide.work.jobs", "ebbtide.work.pipelines")
CLIENTS = ("kubernetes.client", "kfp")


def declaration(teams: int) -> dict[str, object]:
    """Declare work pools, a queue over each, and teams that use every queue."""
    system = {"name": "system", "role": "system", "machine": "e2-standard-4", "nodes": {"max": 3}}
    spot = {"machine": "n2-standard-8", "capacity": "spot", "nodes": {"max": 10}}
    return {
        "name": "train",
        "owner": "vision-team",
        "cloud": {"kind": "gke", "project": "acme-ml", "location": "us-central1-a"},
        "pools": [system, *({"name": f"pool-{index}", **spot} for index in range(QUEUES))],
        "queues": [{"name": f"queue-{index}", "pools": [f"pool-{index}"]} for index in range(QUEUES)],
        "teams": [
            {"name": f"team-{index}", "members": [f"team-{index}@acme.example"]} for index in range(teams)
        ],
    }


def write_project(directory: str, declared: dict[str, object]) -> None:
    """Write a project of the repository's program with the stack `bench`."""
    project = {"name": "ebbtide", "runtime": "python", "main": str(HERE.parent)}
    stack = {"config": {"ebbtide:cluster": declared}}
    Path(directory, "Pulumi.yaml").write_text(json.dumps(project), encoding="utf-8")
    Path(directory, "Pulumi.bench.yaml").write_text(json.dumps(stack), encoding="utf-8")


def cpu_of(code: str) -> float:
    """CPU seconds of a fresh process that runs `code`."""
    return statistics.median(cpu("-c", code) for _ in range(ROUNDS))


def main() -> None:
    """Print a row a size: medians of both, and the median ratio of CPU time."""
    print(f"{'teams x queues':>14} {'preview':>8} {'memory':>9} {'flat':>7} {'ratio':>6}")
    for teams in TEAMS:
        with tempfile.TemporaryDirectory() as directory:
            write_project(directory, declaration(teams))
            preview = ("-m", "ebbtide", "preview", "bench", "--cwd", directory)
            flat = (str(HERE / "programs" / "flat_queues.py"), str(teams), str(QUEUES))
            pairs = [(measured(*preview), measured(*flat)) for _ in range(ROUNDS)]
        seconds, memory = (
            statistics.median(column) for column in zip(*(mine for mine, _ in pairs), strict=True)
        )
        other = statistics.median(theirs for _, (theirs, _) in pairs)
        ratio = statistics.median(mine / theirs for (mine, _), (theirs, _) in pairs)
        print(f"{f'{teams} x {QUEUES}':>14} {seconds:>7.2f}s {memory:>5.0f} MiB {other:>6.2f}s {ratio:>6.2f}")

    start = cpu_of("pass")
    clients = {name: cpu_of(f"import {name}") - start for name in CLIENTS}
    print(f"{'import':<28} {'CPU':>8}  " + "  ".join(f"of {name}" for name in CLIENTS))
    for name in (*MODULES, *CLIENTS):
        taken = cpu_of(f"import {name}") - start
        ratios = "  ".join(f"{taken / of:>{len(client) + 3}.2f}" for client, of in clients.items())
        print(f"{name:<28} {taken:>6.2f} s  {ratios}")


if __name__ == "__main__":
    main()
