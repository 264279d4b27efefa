"""Work that lands on the pools, from the profile alone.

Nothing is imported here: training code that wants `ebbtide.workloads.checkpoints` gets the standard library
and no more.
"""
