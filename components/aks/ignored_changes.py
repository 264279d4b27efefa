"""The cluster's list of pools after a refresh.

AKS lists every pool with the cluster, and `pulumi refresh` treats them all as declared there. The next update
would send only the system pool: AKS keeps the others (pulumi-azure-native#579, 2023-09), but the preview
shows them as removed, and every pool is scaled for it (#4264, 2025-08). A permanent `ignoreChanges` is no
solution. It would also ignore changes of the system pool, and every update would send an outdated list, which
AKS rejects once one of its pools is deleted (#2719, 2023-09).

So the list is ignored while no input of the cluster changes. The program cannot read the state: the
fingerprint of the inputs is an output of the stack, written after a successful deployment. If it is missing
or differs, the list is sent. pulumi 3.259 has no state migrations, which could remove the pools from the
state.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from typing import Any, Final

import pulumi
from pulumi.runtime import invoke_async

OUTPUT: Final = "aksClusterInputs"
"""Name of the stack's output."""
_TYPE: Final = "azure-native:containerservice:ManagedCluster"
_READ: Final = "pulumi:pulumi:readStackOutputs"
_UNWRITTEN: Final = "failed to load checkpoint: EOF"
"""Error of a read while the engine writes the state to a file: the attributes beside it are empty then
(gocloud.dev 0.46, blob/fileblob/attrs.go)."""
_RETRIES: Final = 50
_PAUSE: Final = 0.1


def fingerprint(inputs: Mapping[str, Any]) -> pulumi.Output[str]:
    """Return a hash of a cluster's inputs; unknown while any of them is unknown."""
    text = pulumi.Output.json_dumps(inputs, sort_keys=True)
    return text.apply(lambda known: hashlib.sha256(known.encode()).hexdigest())


def ignored_while(current: pulumi.Output[str]) -> pulumi.ResourceTransform:
    """Return a transform that ignores changes of the cluster's list of pools.

    Args:
        current: the fingerprint of the cluster's inputs; the list is ignored while it equals the deployed
            one.
    """

    async def ignore(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
        if args.type_ != _TYPE or not await current.is_known():
            return None
        if await current.future() != await deployed():
            return None
        ignoring = pulumi.ResourceOptions(ignore_changes=["agentPoolProfiles"])
        return pulumi.ResourceTransformResult(args.props, pulumi.ResourceOptions.merge(args.opts, ignoring))

    setattr(ignore, "needs_state", True)  # noqa: B010 - no such attribute is declared; the preview reads it
    return ignore


async def deployed() -> str | None:
    """Return the fingerprint of the last successful deployment; None without one.

    Raises:
        Exception: the state cannot be read.
    """
    stack = f"{pulumi.get_organization()}/{pulumi.get_project()}/{pulumi.get_stack()}"
    for _ in range(_RETRIES):
        try:
            return await _read(stack)
        except Exception as error:  # the SDK has no other type for a failed function
            if _UNWRITTEN not in str(error):
                raise
            await asyncio.sleep(_PAUSE)
    return await _read(stack)


async def _read(stack: str) -> str | None:
    outputs: Mapping[str, Mapping[str, str]] = await invoke_async(_READ, {"name": stack}) or {}
    return outputs.get("outputs", {}).get(OUTPUT)
