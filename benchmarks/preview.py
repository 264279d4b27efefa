"""Compare the cost of a declaration with that of the same resources written by hand, in the same preview, and
that of a review with the bare recording; measure the preview of the dev stack.

Each figure is the CPU time of a fresh process, which other work on the machine changes less than wall time;
the ratios are ours to flat and review to recording, pair by pair.
"""

import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SIZES = (3, 125, 250, 500)
ROUNDS = 3


def measured(*arguments: str) -> tuple[float, float]:
    """CPU time in seconds and peak memory in MiB of one fresh Python process."""
    return measured_in(HERE.parent, dict(os.environ), sys.executable, *arguments)


def measured_in(directory: Path, environment: dict[str, str], *command: str) -> tuple[float, float]:
    """CPU time in seconds and peak memory in MiB of a command, with the processes that it waits for."""
    process = subprocess.Popen(command, cwd=directory, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: exit status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def cpu(*arguments: str) -> float:
    """CPU seconds of one fresh Python process."""
    return measured(*arguments)[0]


def program(name: str, pools: int) -> float:
    """CPU seconds of a program with that many work pools."""
    return cpu(str(HERE / "programs" / f"{name}.py"), str(pools))


def main() -> None:
    """Print a row a size: median seconds of both, and the median ratio."""
    for name in ("declared", "flat"):
        program(name, 1)  # compiles what has not been compiled yet
    print(f"{'work pools':>10} {'declared':>9} {'flat':>7} {'ratio':>6}")
    for pools in SIZES:
        pairs = [(program("declared", pools), program("flat", pools)) for _ in range(ROUNDS)]
        ours, flat = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(mine / theirs for mine, theirs in pairs)
        print(f"{pools:>10} {ours:>8.2f}s {flat:>6.2f}s {ratio:>6.2f}")
    pairs = [(program("reviewed", SIZES[-1]), program("declared", SIZES[-1])) for _ in range(ROUNDS)]
    review, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(whole / part for whole, part in pairs)
    print(f"{SIZES[-1]} pools: review {review:.2f}s, recording alone {bare:.2f}s, ratio {ratio:.2f}")
    preview = ("-m", "ebbtide", "preview", "dev")
    cpu(*preview)  # compiles what has not been compiled yet
    print(f"dev: preview {statistics.median(cpu(*preview) for _ in range(ROUNDS)):.2f}s")


if __name__ == "__main__":
    main()
