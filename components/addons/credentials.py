"""Credentials that are generated once, stored in the state, and never shown."""

import base64
import secrets

import pulumi

_BYTES = 24


def generated() -> pulumi.Output[str]:
    """Generate a password of 48 hexadecimal digits as a Secret's `data`: in base64, and secret to Pulumi.

    Each run of the program generates another one. The first is kept by `ignore_changes` on the Secret, with
    which the engine follows the stack's state; `KEPT` names the paths. No provider of random
    values is needed for that, and no declaration. Should a Secret be deleted by hand while the volume of
    its database stays, the new one would not open it: restore the old value from a backup of the state.
    """
    return pulumi.Output.secret(encoded(secrets.token_hex(_BYTES)))


def encoded(text: str) -> str:
    """Text as a Secret's `data` has it: in base64."""
    return base64.b64encode(text.encode()).decode()


KEPT = ("data",)
"""Paths of a Secret whose values stay as they were made."""
