"""Declarations that do not match the schema.

Location of each error, its message in the declaration's terms, and validation of the valid rest.
"""
