"""Compare a review of many pools with the bare recording, and measure the preview of the dev stack.

Each figure is the CPU time of a fresh process, which other work on the machine changes less than wall time.
The ratio is of review to recording, by pairs.
"""

import statistics

from benchmarks.preview import ROUNDS, cpu, program

POOLS = 500


def main() -> None:
    """Print the medians."""
    pairs = [(program("reviewed", POOLS), program("declared", POOLS)) for _ in range(ROUNDS)]
    review, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(whole / part for whole, part in pairs)
    print(f"{POOLS} pools: review {review:.2f}s, recording alone {bare:.2f}s, ratio {ratio:.2f}")
    preview = ("-m", "ebbtide", "preview", "dev")
    cpu(*preview)  # compiles what has not been compiled yet
    print(f"dev: preview {statistics.median(cpu(*preview) for _ in range(ROUNDS)):.2f}s")


if __name__ == "__main__":
    main()
