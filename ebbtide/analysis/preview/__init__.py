"""Offline preview of a stack: read its files, run its program, and render the result.

The package imports nothing, so that its parts load separately.
"""
