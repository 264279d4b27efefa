"""Causes of waiting: a pure function from a workload's objects to the cause, and its reader."""
