"""Text helpers for the messages of several rules."""

from ebbtide.declaration.catalog import CloudKind


def service_name(cloud: CloudKind) -> str:
    """Return the name of a cloud's Kubernetes service."""
    return cloud.value.upper()


def dollars(amount: float) -> str:
    """Format an amount for messages: `$0.067`, `$12.50`."""
    return f"${amount:.3f}" if amount < 1 else f"${amount:.2f}"
