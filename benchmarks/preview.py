"""Measure the recording of declarations by their size, a review compared with the bare recording, and the
preview of the dev stack.

Each figure is the CPU time of a fresh process, which other work on the machine changes less than wall time;
the ratio is review to recording, pair by pair.
"""

import resource
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SIZES = (3, 125, 250, 500)
ROUNDS = 3


def cpu(*arguments: str) -> float:
    """CPU seconds of one fresh Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, cwd=HERE.parent, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def program(name: str, pools: int) -> float:
    """CPU seconds of a program with that many work pools."""
    return cpu(str(HERE / "programs" / f"{name}.py"), str(pools))


def main() -> None:
    """Print a row a size with the median, then the review and the preview."""
    program("declared", 1)  # compiles what has not been compiled yet
    print(f"{'work pools':>10} {'recording':>9}")
    for pools in SIZES:
        print(f"{pools:>10} {statistics.median(program('declared', pools) for _ in range(ROUNDS)):>8.2f}s")
    pairs = [(program("reviewed", SIZES[-1]), program("declared", SIZES[-1])) for _ in range(ROUNDS)]
    review, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(whole / part for whole, part in pairs)
    print(f"{SIZES[-1]} pools: review {review:.2f}s, recording alone {bare:.2f}s, ratio {ratio:.2f}")
    preview = ("-m", "ebbtide", "preview", "dev")
    cpu(*preview)  # compiles what has not been compiled yet
    print(f"dev: preview {statistics.median(cpu(*preview) for _ in range(ROUNDS)):.2f}s")


if __name__ == "__main__":
    main()
