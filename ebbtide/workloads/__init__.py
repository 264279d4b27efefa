"""Workloads on the pools, from the profile only.

This module imports nothing: training code that imports `ebbtide.workloads.checkpoints` loads only the
standard library.
"""
