"""Kubeflow Trainer's controllers, and JobSet's, which Trainer's chart brings along."""

from ebbtide.rehearsal.control_plane.program import Program, managed

TRAINER = Program(
    tool="trainer-controller-manager",
    # Of the chart of Trainer 2.3.0.
    labels={"app.kubernetes.io/name": "kubeflow-trainer", "app.kubernetes.io/component": "manager"},
    outside=managed,
)

JOBSET = Program(
    tool="jobset",
    # Of the chart of JobSet 0.12.0.
    labels={"app.kubernetes.io/name": "jobset", "app.kubernetes.io/component": "controller"},
    outside=managed,
)
