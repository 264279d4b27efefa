"""Common core of the fake providers gcp and azure-native.

`resource_kind` describes a type, `constraints` reads its schema's limits from tables, `check`, `diff` and
`provider` implement the engine's calls, and `read_back` has the clouds' changes between a write and a read.
"""
