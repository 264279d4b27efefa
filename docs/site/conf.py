"""Sphinx's configuration of the documentation site: the repository's Markdown, in the order of `toc.yml`.

Sources are read from the repository's root, so that a page's links hold here and where its file is read.
"""

import sys
from pathlib import Path
from typing import Any, Final

import typer
import typer.cli
import typer.main
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parents[2]))

from ebbtide import __version__
from ebbtide.cli.entry_point import app as command_line

project = "Ebbtide"
author = "The Ebbtide authors"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_external_toc",
    "docs.site.pictures",
    "docs.site.search",
]
external_toc_path = "docs/site/toc.yml"
external_toc_exclude_missing = True
exclude_patterns = [".*", "**/.*"]
suppress_warnings = ["epub.unknown_project_files"]

myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
default_role = "code"
smartquotes = False  # options begin with two hyphens

copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"  # commands and files, not output

html_theme = "furo"
html_title = f"Ebbtide {version}"
html_copy_source = False
html_show_copyright = False

_COMMAND_LINE: Final = "docs/site/command-line"


def _write_command_line(_: Sphinx, page: str, source: list[str]) -> None:
    """Add the help of every command to its page."""
    if page == _COMMAND_LINE:
        command = typer.main.get_command(command_line)
        _lengthen(command)
        context = typer.Context(command, info_name="ebbtide")
        text = typer.cli.get_docs_for_click(obj=command, ctx=context, name="ebbtide")
        source[0] += text.partition("\n")[2]


def _lengthen(command: Any) -> None:
    """Give each command its whole first sentence in the list of commands, which is shortened otherwise."""
    command.short_help = (command.help or "").partition("\n")[0]
    for nested in getattr(command, "commands", {}).values():
        _lengthen(nested)


def _keep_colons(_: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Begin an attribute's docstring with an empty comment: napoleon takes text before a colon as a type."""
    del name, thing, options
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]


def setup(app: Sphinx) -> None:
    """Register what is generated."""
    app.connect("source-read", _write_command_line)
    app.connect("autodoc-process-docstring", _keep_colons, priority=400)
