"""Secrets in a provider's outputs."""

from ebbtide.recording.values import Plain, Secret


def as_secret_as(value: Plain, example: Plain) -> Plain:
    """Mark the parts of a value secret that are secret in an example: by name in objects; a list is secret as
    a whole, since its order may change.

    The engine does the same for providers without support for secrets (pulumi 3.259,
    sdk/go/common/resource/plugin, `annotateSecrets`).
    """
    match value, example:
        case Secret(), _:
            return value
        case dict(), dict():
            return {key: as_secret_as(item, example.get(key)) for key, item in value.items()}
        case _:
            return Secret(value) if _holds_secret(example) else value


def _holds_secret(value: Plain) -> bool:
    match value:
        case Secret():
            return True
        case dict():
            return any(_holds_secret(item) for item in value.values())
        case list():
            return any(_holds_secret(item) for item in value)
        case _:
            return False
