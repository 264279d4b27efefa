"""Running a Pulumi program in this process, offline, and recording what it would create.

Nothing is imported here, so that a part can be had without the rest: `recording` is plain data, and
`record` loads Pulumi.
"""
