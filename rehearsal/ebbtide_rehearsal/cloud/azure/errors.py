"""Azure's errors in the form of azure-native 3.29 (pulumi/pulumi-azure-native#4206)."""

from typing import Final

BAD_REQUEST: Final = 400
NOT_FOUND: Final = 404
CONFLICT: Final = 409


def refused(code: str, message: str, *, status: int = BAD_REQUEST, target: str = "") -> str:
    """Format an error of Azure Resource Manager.

    Args:
        code: Azure's error code.
        message: the message.
        status: the HTTP status.
        target: the invalid property; empty if Azure names none.
    """
    suffix = f' Target="{target}"' if target else ""
    return f'Status={status} Code="{code}" Message="{message}"{suffix}'


def invalid(parameter: str, details: str = "") -> str:
    """Format AKS's refusal of a value (Azure/AKS#3300; with details XenitAB/terraform-modules#755)."""
    why = f" Error details: {details}." if details else ""
    more = "Please see https://aka.ms/aks-naming-rules for more details."
    return refused(
        "InvalidParameter", f"The value of parameter {parameter} is invalid.{why} {more}", target=parameter
    )


def missing(parameter: str) -> str:
    """Format AKS's refusal of an omitted parameter (pulumi/pulumi-azure-native#2943, Azure/ARO-HCP#629)."""
    return refused("InvalidParameter", f"Required parameter {parameter} is missing (null).", target=parameter)


def fixed(parameter: str) -> str:
    """Format AKS's refusal to change an immutable property (pulumi/pulumi-azure-native#959)."""
    return refused(
        "PropertyChangeNotAllowed", f"Changing property '{parameter}' is not allowed.", target=parameter
    )


def no_parent(action: str, kind: str, parent: str) -> str:
    """Format Azure Resource Manager's refusal of a resource whose parent does not exist."""
    return refused(
        "ParentResourceNotFound",
        f"Failed to perform '{action}' on resource(s) of type '{kind}', because the parent resource "
        f"'{parent}' could not be found.",
        status=NOT_FOUND,
    )


def not_found(identity: str) -> str:
    """Format Azure Resource Manager's error for a resource that does not exist."""
    group, _, path = identity.partition("/providers/")
    words = path.split("/")
    name = "/".join([words[0], *words[1::2], *words[2::2]])
    return refused(
        "ResourceNotFound",
        f"The Resource '{name}' under resource group '{group.rpartition('/')[2]}' was not found. "
        "For more details please go to https://aka.ms/ARMResourceNotFoundFix",
        status=NOT_FOUND,
    )
