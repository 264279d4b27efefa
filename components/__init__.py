"""Pulumi components: the only modules that know providers' fields. The wheel ships them as
`ebbtide.components`."""
