"""Drift of a stack: its state compared with what exists in the clouds and on the cluster."""
