"""A real Kubernetes control plane on this machine: etcd, API server, controllers, scheduler, kwok, and the
controllers of Kueue, Trainer, JobSet and Katib.

Everything listens on 127.0.0.1 and ends with whoever started it, also when that is killed. Several run at
once. What is no part of Kubernetes itself stands in for a cloud: kwok for kubelets, `program_pods` for the
kubelet of pods whose program really runs, `volumes` for the storage driver, `egress` for the network between
control plane and cluster.
"""

from ebbtide.rehearsal.control_plane.control_plane import ControlPlane, Settings
from ebbtide.rehearsal.control_plane.failures import ControlPlaneError
from ebbtide.rehearsal.control_plane.plan import NAMES, Plan, Tools
from ebbtide.rehearsal.control_plane.stages import EXIT_CODE, RUNS, RUNS_FOR
from ebbtide.rehearsal.control_plane.volumes import Disk, left_disks

__all__ = [
    "EXIT_CODE",
    "NAMES",
    "RUNS",
    "RUNS_FOR",
    "ControlPlane",
    "ControlPlaneError",
    "Disk",
    "Plan",
    "Settings",
    "Tools",
    "left_disks",
]
