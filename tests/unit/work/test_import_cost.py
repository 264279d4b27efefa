import subprocess
import sys

from tests.repository import ROOT
from tests.unit.work.clusters import DEV

_IMPORTS = f"""
import json, sys; sys.path.insert(0, {str(ROOT)!r})
from ebbtide.in_pods import checkpoints, termination
print(*sorted(name for name in sys.modules if name.startswith("ebbtide")))
from ebbtide.work import experiments, jobs, logs, sweeps, training
from ebbtide.placement import Profile
print(Profile.load(sys.argv[1]).cluster)
"""
_WITHOUT_KFP = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
try:
    from ebbtide.work.pipelines import use_pool
except ModuleNotFoundError as error:
    print(error)
"""


def _python(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


def test_the_standard_library_is_enough() -> None:
    """Training code and the creation of Jobs need no installed package, and training code few of our modules;
    benchmarks/queues.py measures the time."""
    loaded, cluster = _python("-I", "-S", "-c", _IMPORTS, DEV.json()).splitlines()
    own = ("checkpoints", "storage", "termination")
    assert loaded.split() == ["ebbtide", "ebbtide.in_pods", *(f"ebbtide.in_pods.{name}" for name in own)]
    assert cluster == DEV.cluster


def test_pipelines_without_kfp() -> None:
    """Without kfp, the error names what to install."""
    output = _python("-I", "-S", "-c", _WITHOUT_KFP)
    assert output.startswith(
        "Placing the steps of a pipeline needs the Kubeflow Pipelines SDK, which is not installed. Install it"
    )
    assert output.endswith("[kfp]'.\n")
