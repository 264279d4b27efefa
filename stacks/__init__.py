"""Stacks: from a stack's configuration to its cluster and its outputs."""
