"""Emulation of node pools: machines, nodes, the cluster autoscaler, reclaims, and pods that run as processes.

`scale_up`, `scale_down`, `provisioning_requests` and `removal` decide from a `ClusterSnapshot`; `actuator`
applies the decisions; `loop` runs the control loop; `pod_processes` runs pods as processes of this machine.
"""
