"""Priorities of workloads in the queues: names, values and descriptions of Kueue's
WorkloadPriorityClasses."""

PRIORITIES = {
    "ebbtide-low": (-1000, "Gives way to everything else: sweeps, what can wait for the night."),
    "ebbtide-normal": (0, "What work has that asks for no other."),
    "ebbtide-high": (1000, "Goes first within its team; may take the place of the team's lower work."),
}
