"""Compare a review of many pools with the bare recording, and measure the preview of the dev stack.

Each figure is the CPU time of a fresh process, which other work on the machine changes less than wall time.
The ratio is of review to recording, by pairs.
"""

import resource
import statistics
import subprocess
import sys

from benchmarks.preview import HERE, ROUNDS

POOLS = 500


def cpu(*arguments: str) -> float:
    """CPU time of one fresh Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, cwd=HERE.parent, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def program(name: str) -> float:
    """CPU time of a program."""
    return cpu(str(HERE / "programs" / f"{name}.py"), str(POOLS))


def main() -> None:
    """Print the medians."""
    pairs = [(program("reviewed"), program("declared")) for _ in range(ROUNDS)]
    review, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(whole / part for whole, part in pairs)
    print(f"{POOLS} pools: review {review:.2f}s, recording alone {bare:.2f}s, ratio {ratio:.2f}")
    preview = ("-m", "ebbtide", "preview", "dev")
    cpu(*preview)  # compiles what has not been compiled yet
    print(f"dev: preview {statistics.median(cpu(*preview) for _ in range(ROUNDS)):.2f}s")


if __name__ == "__main__":
    main()
