"""Numbers of things in sentences."""


def several(number: object, singular: str, more: str = "") -> str:
    """Format a count: `1 node`, `2 nodes`; `more` is an irregular plural."""
    return f"{number} {singular if number == 1 else more or singular + 's'}"
