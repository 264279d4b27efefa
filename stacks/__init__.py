"""Stacks: deploy a stack's configured cluster and export its outputs."""
