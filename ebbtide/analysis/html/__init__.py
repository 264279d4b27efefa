"""Self-contained HTML pages: one style sheet, and one Jinja environment, which escapes every expression."""

import re
from itertools import chain

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape


def jinja_environment(*packages: str) -> Environment:
    """Return the environment for the shared templates and those in the directory `templates` of packages."""
    templates = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in (*packages, __name__)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {"prose": prose, "breakable": breakable}
    return templates


def prose(text: str) -> Markup:
    """Escape text, and mark code in backticks."""
    parts = re.split(r"`([^`\n]+)`", text)
    pairs = zip(parts[::2], chain(parts[1::2], [""]), strict=True)
    code = Markup("<code>{}</code>")  # `format` escapes its arguments
    return Markup().join(escape(words) + (code.format(name) if name else "") for words, name in pairs)


def breakable(path: str) -> Markup:
    """Escape a property path, and let lines break at its dots."""
    return Markup(".<wbr>").join(path.split("."))
