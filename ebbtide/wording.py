"""Numbers of things in sentences."""


def several(number: object, one: str, more: str = "") -> str:
    """A number of things: `1 node`, `2 nodes`; `more` where an s does not make the plural."""
    return f"{number} {one if number == 1 else more or one + 's'}"
