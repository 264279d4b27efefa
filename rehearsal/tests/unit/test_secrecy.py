import pytest

from ebbtide.analysis.recording.values import Plain, Secret
from ebbtide_rehearsal.cloud.protocol import as_secret_as


@pytest.mark.parametrize(
    ("value", "example", "expected"),
    [
        ("a", "b", "a"),
        ("a", Secret("b"), Secret("a")),
        ({"x": "a", "y": "b"}, {"x": Secret("c")}, {"x": Secret("a"), "y": "b"}),
        ({"x": {"z": 1}}, {"x": Secret({})}, {"x": Secret({"z": 1})}),
        (["a", "b"], [{"k": Secret("c")}], Secret(["a", "b"])),
        ({"x": Secret("a")}, {"x": Secret("b")}, {"x": Secret("a")}),
        ("a", None, "a"),
    ],
)
def test_an_answer_is_secret_where_the_question_was(value: Plain, example: Plain, expected: Plain) -> None:
    """By name in objects, a list as a whole; what is secret already is not so twice."""
    assert as_secret_as(value, example) == expected
