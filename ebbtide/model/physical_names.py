"""Names that have to fit a cloud's limit."""

from hashlib import sha256

_HASH = 6
_ACCOUNT_LIMIT = 24


def fitting(name: str, limit: int) -> str:
    """A name of at most `limit` characters: the name itself, or its beginning with a hash of the whole.

    A name that is merely cut off lets two clusters of one project collide.

    Raises:
        ValueError: the limit leaves no room for a name and a hash.
    """
    if len(name) <= limit:
        return name
    if limit <= _HASH + 1:
        raise ValueError(f"{name} cannot be fitted into {limit} characters.")
    return f"{name[: limit - _HASH - 1].rstrip('-')}-{sha256(name.encode()).hexdigest()[:_HASH]}"


def account_name(*parts: str) -> str:
    """A storage account's name: lower-case letters and digits, at most 24, and no other in the whole world
    may have it, so a hash of all parts stands at its end."""
    text = "-".join(parts)
    letters = "".join(letter for letter in parts[-1].lower() if letter.isascii() and letter.isalnum())
    return f"{letters[:12]}{sha256(text.encode()).hexdigest()[: _ACCOUNT_LIMIT - 12]}"
