"""Compare the import of the workload side with the import of the clients that a user would otherwise import.

Each figure is CPU time beyond Python's own start, the median of fresh processes.
"""

import statistics

from benchmarks.preview import ROUNDS
from benchmarks.queues import measured

MODULES = ("ebbtide.work", "ebbtide.work.jobs", "ebbtide.work.pipelines")
CLIENTS = ("kubernetes.client", "kfp")


def seconds(code: str) -> float:
    """CPU seconds of a fresh process that runs `code`."""
    return statistics.median(measured("-c", code)[0] for _ in range(ROUNDS))


def main() -> None:
    """Print a row a module, with its ratio to each client."""
    start = seconds("pass")
    clients = {name: seconds(f"import {name}") - start for name in CLIENTS}
    print(f"{'import':<28} {'CPU':>8}  " + "  ".join(f"of {name}" for name in CLIENTS))
    for name in (*MODULES, *CLIENTS):
        taken = seconds(f"import {name}") - start
        ratios = "  ".join(f"{taken / of:>{len(client) + 3}.2f}" for client, of in clients.items())
        print(f"{name:<28} {taken:>6.2f} s  {ratios}")


if __name__ == "__main__":
    main()
