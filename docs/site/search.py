"""Words of the site's search that the pages do not have: `search.yml`, as entries of the index.

The search looks for the whole query among the titles and the entries of the index, before it looks for its
words in the text (Sphinx 9.0, themes/basic/static/searchtools.js, `_performSearch`).
"""

import re
from pathlib import Path
from typing import Final

import yaml
from sphinx.application import Sphinx

_WORDS: Final[dict[str, list[str]]] = yaml.safe_load(
    Path(__file__).with_name("search.yml").read_text(encoding="utf-8")
)
_HEADING: Final = re.compile(r"^(#{1,4}) (.+)$", flags=re.MULTILINE)


def with_entries(page: str, text: str) -> str:
    """Return the text of a page with its entries: below its title, or above the heading of a section.

    They are main entries (`!`), which the search shows before other entries.

    Raises:
        ValueError: the page has no such section.
    """
    for place, phrases in _WORDS.items():
        name, _, section = place.partition("#")
        if name != page:
            continue
        headings = _HEADING.finditer(text)
        heading = next((it for it in headings if not section or _anchor(it[2]) == section), None)
        if heading is None:
            raise ValueError(f"{page} has no section {section}, which docs/site/search.yml names")
        entries = ", ".join(f"!{phrase}" for phrase in phrases)
        at = heading.start() if section else heading.end()
        text = f"{text[:at]}\n\n```{{index}} {entries}\n```\n\n{text[at:]}"
    return text


def _anchor(heading: str) -> str:
    """Return the anchor of a heading, as on GitHub."""
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


def _add_entries(_: Sphinx, page: str, source: list[str]) -> None:
    source[0] = with_entries(page, source[0])


def setup(app: Sphinx) -> None:
    """Register the words."""
    app.connect("source-read", _add_entries)
