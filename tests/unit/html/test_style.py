"""The style sheet and the escaping that all pages share."""

import re
from importlib.resources import files
from itertools import product

import pytest

from ebbtide.analysis.html import breakable, prose

_CSS = (files("ebbtide.analysis.html") / "templates" / "style.css").read_text(encoding="utf-8")
_INK = ("ink", "quiet", "sea")
_PAPER = ("page", "card", "soft")
_TINTS = ("sea-soft", "sand-soft", "fail-soft", "violet-soft")


def _schemes() -> dict[str, dict[str, str]]:
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w+)", block)) for block in _CSS.split("@media", 2)[:2])
    return {"light": light, "dark": {**light, **dark}}


def _luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    channels = (int(digits[index : index + 2], 16) / 255 for index in (0, 2, 4))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(colour: str, other: str) -> float:
    darker, lighter = sorted((_luminance(colour), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_the_contrast_of_wcag_aa(scheme: str) -> None:
    """Text of every colour is readable on every background that it is used on, 4.5 to 1."""
    colours = _schemes()[scheme]
    pairs = [*product(_INK, _PAPER), *product(("ink", "quiet"), _TINTS)]
    faint = {pair: _contrast(*(colours[name] for name in pair)) for pair in pairs}
    assert {pair: ratio for pair, ratio in faint.items() if ratio < 4.5} == {}


def test_badges_have_the_contrast_of_wcag_aa() -> None:
    """White text on the badge of each verdict is readable."""
    badges = dict(re.findall(r"\.badge\.(\w+) \{ background: (#\w+)", _CSS))
    assert badges.keys() == {"pass", "warn", "fail"}
    assert [name for name, colour in badges.items() if _contrast("#fff", colour) < 4.5] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_of_charts_have_the_contrast_of_wcag_aa(scheme: str) -> None:
    """Lines and marks stand out from the background of charts, 3 to 1."""
    colours = _schemes()[scheme]
    for name in ("sea", "violet", "sand", "fail", "quiet"):
        assert _contrast(colours[name], colours["soft"]) >= 3


def test_prose_marks_code_and_escapes_the_rest() -> None:
    """Code in backticks becomes code; everything is escaped; a single backtick stays."""
    assert prose("Write `a <b>` & go") == "Write <code>a &lt;b&gt;</code> &amp; go"
    assert prose("a ` b") == "a ` b"


def test_paths_break_at_their_dots() -> None:
    """A path may break after each dot, and is escaped."""
    assert breakable("a.b<c>") == "a.<wbr>b&lt;c&gt;"
