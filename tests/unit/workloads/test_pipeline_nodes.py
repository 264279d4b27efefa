import pytest
from hypothesis import given
from hypothesis import settings as examined

from ebbtide.placement import PoolProfile, Profile
from ebbtide.work.pipelines import use_pool
from tests.declarations import Declaration, declarations
from tests.unit.workloads.clusters import PROFILES, derived
from tests.unit.workloads.steps import led, settings, step, tolerated


def _admitted(profile: Profile, pool: PoolProfile) -> set[str]:
    """Pools whose nodes a step takes that was sent to one of them."""
    count = pool.accelerator.count if pool.accelerator else 0
    pod = settings(use_pool(step(), pool, gpus=count))
    return {item.name for item in profile.pools if tolerated(item, pod) and led(item, pod["nodeAffinity"])}


def _assert_exact(profile: Profile) -> None:
    for pool in profile.pools:
        if pool.capacity != "queued":
            assert _admitted(profile, pool) == {pool.name}


@pytest.mark.parametrize("stack", PROFILES)
def test_a_step_goes_to_its_pool_in_every_stack(stack: str) -> None:
    """A step is scheduled only on nodes of its pool, in every stack of the repository."""
    _assert_exact(PROFILES[stack])


@examined(max_examples=30, deadline=None)
@given(declarations())
def test_a_step_goes_to_its_pool_whatever_is_declared(declaration: Declaration) -> None:
    """A step is scheduled only on nodes of its pool, regardless of other pools and taints."""
    _assert_exact(derived(declaration))
