"""The fake providers' common core: what gcp and azure-native do alike.

`resource_kind` describes a type, `constraints` reads its schema's limits from tables, `check`, `diff` and
`provider` are the engine's calls, and `read_back` has what the clouds change between a write and a read.
"""
