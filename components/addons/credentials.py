"""Credentials that are generated once, stored in the state, and never displayed."""

import base64
import secrets

import pulumi

_BYTES = 24


def generated() -> pulumi.Output[str]:
    """Generate a password of 48 hexadecimal digits as a Secret's `data`: in base64, and secret in Pulumi.

    Each run of the program generates a new one; `ignore_changes` on the Secret (paths in `KEPT`) keeps the
    first. This needs no provider of random values, and no declaration. If a Secret is deleted manually while
    the volume of its database remains, the new password does not open the database: restore the old value
    from a backup of the state.
    """
    return pulumi.Output.secret(encoded(secrets.token_hex(_BYTES)))


def encoded(text: str) -> str:
    """Encode a text for a Secret's `data`: in base64."""
    return base64.b64encode(text.encode()).decode()


IGNORED_CHANGES = ("data",)
"""Paths of a Secret whose values stay as created."""
