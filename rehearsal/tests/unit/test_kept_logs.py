"""Logs of pods that ran as processes, after their node is removed."""

from pathlib import Path

from ebbtide_rehearsal.cloud.control_planes import kept_log
from ebbtide_rehearsal.cloud.node_pools.pod_processes import log_file

_PATH = "/api/v1/namespaces/vision/pods/train-0/log"


def test_the_last_lines_of_a_pod_remain(tmp_path: Path) -> None:
    """A thousand lines of that pod, and nothing for other requests, pods and paths, nor again for a reader
    that has lines already."""
    file = log_file(tmp_path, "vision", "train-0")
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"line {number}\n" for number in range(1500)))
    kept = kept_log(tmp_path, "GET", _PATH, {}).splitlines()
    assert (kept[0], kept[-1]) == ("line 500", "line 1499")
    assert kept_log(tmp_path, "DELETE", _PATH, {}) == ""
    assert kept_log(tmp_path, "GET", _PATH, {"sinceTime": "2026-11-27T09:00:00Z"}) == ""
    for path in (
        _PATH.replace("train-0", "other"),
        _PATH.replace("vision", ".."),
        _PATH.removesuffix("/log"),
    ):
        assert kept_log(tmp_path, "GET", path, {}) == ""
