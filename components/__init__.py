"""Pulumi components: the only place that knows providers' fields. The wheel carries them as
`ebbtide.components`."""
