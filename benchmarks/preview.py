"""Compare the cost of a declaration with that of the same resources written by hand, in the same preview.

Each figure is of a fresh process, as a user would start it; the ratio is ours to flat, pair by pair.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
SIZES = (3, 125, 250, 500)
ROUNDS = 3


def seconds(program: str, pools: int) -> float:
    """Wall time of one fresh process that records a program with that many work pools."""
    start = time.perf_counter()
    script = HERE / "programs" / f"{program}.py"
    subprocess.run([sys.executable, script, str(pools)], check=True, cwd=HERE.parent)
    return time.perf_counter() - start


def main() -> None:
    """Print a row a size: median seconds of both, and the median ratio."""
    print(f"{'work pools':>10} {'declared':>9} {'flat':>7} {'ratio':>6}")
    for pools in SIZES:
        pairs = [(seconds("declared", pools), seconds("flat", pools)) for _ in range(ROUNDS)]
        ours, flat = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(mine / theirs for mine, theirs in pairs)
        print(f"{pools:>10} {ours:>8.2f}s {flat:>6.2f}s {ratio:>6.2f}")


if __name__ == "__main__":
    main()
