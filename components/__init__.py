"""Pulumi components: the only modules that know providers' fields. The wheel ships them as
`ebbtide.components`."""

import pulumi

from ebbtide.text import outdated

if problem := outdated():
    raise pulumi.RunError(problem)
