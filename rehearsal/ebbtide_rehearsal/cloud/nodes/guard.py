"""Process groups that are killed when this process ends, even if it is killed."""

import contextlib
import os
import signal
import subprocess
import threading

_GUARD = """
trap '' TERM INT HUP
groups=' '
while read -r verb group; do
  case $verb in
    add) groups="$groups$group " ;;
    drop) groups="${groups%% $group *} ${groups#* $group }" ;;
  esac
done
for group in $groups; do kill -KILL "-$group"; done
"""
# Waits for EOF on a pipe that only this process holds, which also occurs when it is killed. The `kill` of
# dash takes no `--` before a group.


class Guard:
    """Kills the registered process groups once this process has ended."""

    def __init__(self) -> None:
        """Start the guard."""
        self._lock = threading.Lock()
        self._shell = subprocess.Popen(  # noqa: S603 - our own script
            ["/bin/sh", "-c", _GUARD],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            process_group=0,
        )

    def add(self, group: int) -> None:
        """Register a group."""
        self._send(f"add {group}")

    def drop(self, group: int) -> None:
        """Kill a group and unregister it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        self._send(f"drop {group}")

    def close(self) -> None:
        """Kill all groups."""
        with self._lock:
            if self._shell.stdin is not None:
                self._shell.stdin.close()
            self._shell.wait()

    def _send(self, words: str) -> None:
        with self._lock:
            if self._shell.stdin is not None:
                self._shell.stdin.write(words + "\n")
                self._shell.stdin.flush()
