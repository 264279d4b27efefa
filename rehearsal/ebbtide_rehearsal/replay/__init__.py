"""Replay of a trace of jobs on a declaration, in virtual time: the real Kueue, node pools, cost, waiting."""
