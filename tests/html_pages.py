"""Parsed HTML pages."""

from typing import Any, Final, cast
from xml.etree import ElementTree as ET

import html5lib

NAMESPACES: Final = {"h": "http://www.w3.org/1999/xhtml", "s": "http://www.w3.org/2000/svg"}


def parsed(page: str) -> ET.Element:
    """Parse a page; any error of syntax is raised."""
    parser = cast("Any", html5lib.HTMLParser(strict=True))
    return cast("ET.Element", parser.parse(page))


def text_of(element: ET.Element) -> str:
    """Return the text of an element and its children, on one line."""
    return " ".join("".join(element.itertext()).split())


def element_names(element: ET.Element) -> set[str]:
    """Return the names of an element and its children, without comments."""
    return {child.tag.rpartition("}")[2] for child in element.iter() if not callable(child.tag)}
