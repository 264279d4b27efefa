"""Numbers of things in sentences."""


def several(number: object, one: str, more: str = "") -> str:
    """Format a count: `1 node`, `2 nodes`; `more` is an irregular plural."""
    return f"{number} {one if number == 1 else more or one + 's'}"
