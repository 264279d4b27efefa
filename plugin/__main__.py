"""The provider of the package `ebbtide`, as Pulumi starts it from a checkout."""

from ebbtide.components.plugin import main

main()
