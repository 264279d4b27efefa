"""Offline execution of a Pulumi program, and a recording of the resources that it registers.

The package imports nothing, so that its parts load separately: `recording` is plain data, `record` loads
Pulumi.
"""
