"""The offline preview: the real program, run in this process, recorded and shown.

Nothing is imported here, so that a part can be had without the rest: `recording` is plain data, `record`
loads Pulumi.
"""
