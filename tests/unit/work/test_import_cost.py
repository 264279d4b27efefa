import subprocess
import sys

import pytest

from tests.repository import ROOT

_MODULES = [
    "ebbtide.work",
    "ebbtide.in_pods.checkpoints",
    "ebbtide.work.jobs",
    "ebbtide.work.sweeps",
    "ebbtide.work.jobs",
    "ebbtide.work.experiments",
    "ebbtide.work.training",
    "ebbtide.work.pipelines",
]
_SLOW = ["kfp", "pulumi", "kubeflow", "kubernetes", "pydantic", "google", "yaml"]
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


@pytest.mark.parametrize("module", _MODULES)
def test_importing_the_workload_side_is_cheap(module: str) -> None:
    """No kfp, no Pulumi and no other client is loaded; benchmarks/queues.py measures the time."""
    loaded = f"import sys, {module}; print(*(set({_SLOW!r}) & sys.modules.keys()))"
    assert _python("-c", loaded).strip() == ""


def test_pipelines_without_kfp() -> None:
    """Without kfp, the error names what to install."""
    output = _python("-I", "-S", "-c", _WITHOUT_KFP)
    assert output.startswith(
        "Placing the steps of a pipeline needs the Kubeflow Pipelines SDK, which is not installed. Install it"
    )
    assert output.endswith("[kfp]'.\n")
