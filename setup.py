"""Packages of the wheel: `ebbtide`, and inside it `components` as `ebbtide.components` and the templates of
`ebbtide init`.

Packages are found, not listed: a list forgets the next one. No wheel has a top-level `components` or
`stacks`.
"""

from setuptools import find_packages, setup

own = find_packages(include=["ebbtide", "ebbtide.*"])
components = find_packages(include=["components", "components.*"])

setup(
    packages=[*own, *(f"ebbtide.{package}" for package in components), "ebbtide.template"],
    package_dir={"ebbtide.components": "components", "ebbtide.template": "template"},
)
