"""Validation rules of the declaration, as data: each with its name, its source and its check.

Rules check the declaration as written, so that a fault refers to the user's input. `declare` runs all of them
and reports every fault. A rule's severity is an error or a warning.
"""
