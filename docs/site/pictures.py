"""Pictures that are rendered when the site is built: the recorded session, and diagrams."""

import io
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import merman
from docutils import nodes
from docutils.parsers.rst import Directive
from rich.console import Console
from rich.text import Text
from sphinx.application import Sphinx

COLUMNS: Final = 80
_CAST: Final = Path(__file__).with_name("session.cast")
"""The recorded session, in asciinema's format 2 (docs.asciinema.org/manual/asciicast/v2)."""
Event = tuple[float, str, str]
"""Seconds from the start, `o` for output or `m` for a marker, and the text."""

_WEB_FONTS: Final = re.compile(r"@font-face \{.*?\}", flags=re.DOTALL)
_FIRST_PAGE: Final = "README"
_PREVIEW: Final = re.compile(r"<!-- preview -->.*<!-- end of preview -->", flags=re.DOTALL)
_THEMES: Final = {"only-light": "default", "only-dark": "dark"}
"""Mermaid's theme by furo's class for a color scheme."""


def read() -> Iterator[Event]:
    """Yield the events of the recorded session."""
    for line in _CAST.read_text(encoding="utf-8").splitlines()[1:]:
        seconds, kind, data = json.loads(line)
        yield seconds, kind, data


def session_pictures(events: Iterable[Event]) -> Iterator[str]:
    """Yield a picture for each step of a session: SVG, with its text as text."""
    for title, shown in _steps(events):
        console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True)
        console.print(Text.from_ansi(shown.replace("\r", "")), end="")
        yield _WEB_FONTS.sub("", console.export_svg(title=title))


def _steps(events: Iterable[Event]) -> Iterator[tuple[str, str]]:
    """Yield the title of each marker with the output that follows it."""
    steps: list[tuple[str, list[str]]] = []
    for _, kind, data in events:
        if kind == "m":
            steps.append((data, []))
        else:
            steps[-1][1].append(data)
    return ((title, "".join(shown)) for title, shown in steps)


def diagram(code: str, theme: str) -> str:
    """Render Mermaid's text as SVG in one of its themes."""
    settings = {"theme": theme, "htmlLabels": False, "flowchart": {"htmlLabels": False}}
    engine = merman.MermanEngine(None, None)
    return engine.render_svg(f"%%{{init: {json.dumps(settings)}}}%%\n{code}", None)


class _Session(Directive):
    """The recorded session."""

    def run(self) -> list[nodes.Node]:
        """Insert its pictures."""
        return [nodes.raw("", picture, format="html") for picture in session_pictures(read())]


class _Mermaid(Directive):
    """A diagram, for light and dark pages."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Insert both pictures; the page shows one."""
        code = "\n".join(self.content)
        return [_image(diagram(code, theme), scheme, code) for scheme, theme in _THEMES.items()]


def _image(svg: str, scheme: str, alternative: str) -> nodes.Node:
    data = b64encode(svg.encode()).decode()
    return nodes.image("", uri=f"data:image/svg+xml;base64,{data}", alt=alternative, classes=[scheme])


def _show_session(_: Sphinx, page: str, source: list[str]) -> None:
    """Show the recorded session on the first page in place of the preview, with which it begins."""
    if page == _FIRST_PAGE:
        source[0] = _PREVIEW.sub("```{session}\n```", source[0])


def setup(app: Sphinx) -> None:
    """Register the pictures."""
    app.add_directive("session", _Session)
    app.add_directive("mermaid", _Mermaid)
    app.connect("source-read", _show_session)
