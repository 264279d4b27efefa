"""The pictures of the documentation site: the recorded session and the diagrams."""

import re
from xml.etree import ElementTree as ET

import pytest

from docs.site.pictures import COLUMNS, diagram, read, session_pictures
from tests.repository import ROOT

_DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
_DIAGRAMS = {
    path.relative_to(ROOT).as_posix(): code
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for code in _DIAGRAM.findall(path.read_text(encoding="utf-8"))
}
_NAMESPACES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def _words(svg: str) -> str:
    """Return the text of a picture without spaces, which it may have as other characters."""
    return re.sub(r"\s", "", "".join(ET.fromstring(svg).itertext()))  # noqa: S314 - made here


def test_the_session_fits_its_terminal() -> None:
    """No line is broken where the reader would not break it."""
    shown = "".join(data for _, kind, data in read() if kind == "o")
    lines = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown).splitlines()
    assert [line for line in lines if len(line) > COLUMNS] == []


def test_each_step_of_the_session_has_a_picture() -> None:
    """Text of a picture can be selected, and nothing is fetched from elsewhere."""
    pictures = list(session_pictures(read()))
    assert len(pictures) == sum(kind == "m" for _, kind, _ in read())
    assert "did you mean n1-highmem-8".replace(" ", "") in _words(pictures[-1])
    for picture in pictures:
        assert set(re.findall(r"https?://[^\"')\s]+", picture)) <= {*_NAMESPACES, "https://www.textualize.io"}
        assert "url(http" not in picture


@pytest.mark.parametrize("page", _DIAGRAMS)
@pytest.mark.parametrize("theme", ["default", "dark"])
def test_a_diagram_is_drawn_with_its_words(page: str, theme: str) -> None:
    """Without a browser, and with nothing from elsewhere."""
    svg = diagram(_DIAGRAMS[page], theme)
    words = _words(svg)
    labels = re.findall(r'\["([^"<]+)"\]', _DIAGRAMS[page])
    assert labels
    assert [label for label in labels if label.replace(" ", "") not in words] == []
    assert set(re.findall(r"https?://[^\"')\s]+", svg)) <= _NAMESPACES
