"""Priorities of workloads in the queues: names, values and descriptions of Kueue's
WorkloadPriorityClasses."""

PRIORITIES = {
    "ebbtide-low": (-1000, "Yields to all other work, such as sweeps that can run overnight."),
    "ebbtide-normal": (0, "Default priority of work."),
    "ebbtide-high": (1000, "First within its team, whose work of lower priority it may preempt."),
}
