"""Scenarios: steps on a stack, and expectations of their results.

`model` defines the file format, `conditions` the expectations, `observer` the snapshots they are checked
against, `runner` the steps and the whole.
"""
