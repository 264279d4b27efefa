"""Tests of the stack `dev`: its program runs offline, and no cloud is asked."""

from pathlib import Path

import pytest

from ebbtide.analysis.preview.stack_files import read_stack, record_stack
from ebbtide.analysis.recording.recording import Recording


@pytest.fixture(scope="module")
def stack() -> Recording:
    """Return the recorded program of a stack."""
    return record_stack(read_stack(Path(__file__).parent, "dev"))


def test_outputs_are_exported(stack: Recording) -> None:
    """`ebbtide profile` and the clients of the cluster read them."""
    assert {"clusterName", "kubeconfig", "placementProfile"} <= set(stack.outputs)
