"""The controllers of Kubeflow Trainer and of JobSet, which Trainer's chart includes."""

from ebbtide_rehearsal.control_plane.program import Program, managed

TRAINER = Program(
    tool="trainer-controller-manager",
    # From the chart of Trainer 2.3.0.
    labels={"app.kubernetes.io/name": "kubeflow-trainer", "app.kubernetes.io/component": "manager"},
    outside=managed,
)

JOBSET = Program(
    tool="jobset",
    # From the chart of JobSet 0.12.0.
    labels={"app.kubernetes.io/name": "jobset", "app.kubernetes.io/component": "controller"},
    outside=managed,
)
