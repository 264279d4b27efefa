"""Emulation of node pools: machines, nodes, the cluster autoscaler, reclaims, and pods that run as processes.

`scale_up`, `scale_down`, `provisioning_requests` and `reclaiming` decide, as pure functions of a
`ClusterSnapshot`; `actuator` applies the decisions; `processes` runs pods as processes of this machine;
`loop` runs the control loop.
"""

from ebbtide_rehearsal.cloud.nodes.loop import NodeLoop
from ebbtide_rehearsal.cloud.nodes.settings import NodeSettings

__all__ = ["NodeLoop", "NodeSettings"]
