"""Pulumi's engine, the backend and the state of a stack."""
