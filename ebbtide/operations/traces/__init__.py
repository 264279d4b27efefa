"""Traces of jobs: their columns, and the jobs of a cluster as a trace."""
