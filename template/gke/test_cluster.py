"""Tests of the stack `dev`: its program runs offline, and no cloud is asked."""

from pathlib import Path

import pytest

from ebbtide.analysis.preview.stack_files import read_stack, record_stack
from ebbtide.analysis.reading.pools import read_pools
from ebbtide.analysis.recording.recording import Recording


@pytest.fixture(scope="module")
def stack() -> Recording:
    """Return the recorded program of a stack."""
    return record_stack(read_stack(Path(__file__).parent, "dev"))


def test_only_the_system_pool_has_nodes_when_nothing_runs(stack: Recording) -> None:
    """Every other pool scales to zero nodes."""
    kept = [pool.name for pool in read_pools(stack) if pool.idle_nodes]
    assert kept == ["system"]


def test_work_pools_are_tainted(stack: Recording) -> None:
    """A pod that tolerates nothing starts no node of a work pool."""
    assert [pool.name for pool in read_pools(stack) if pool.name != "system" and not pool.taints] == []


def test_outputs_are_exported(stack: Recording) -> None:
    """`ebbtide profile` and the clients of the cluster read them."""
    assert {"clusterName", "kubeconfig", "placementProfile"} <= set(stack.outputs)
