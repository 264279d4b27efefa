"""Fake of azure-native 3.29 and of the part of Azure that the program uses.

`kinds` is the table of types, one row each; rules are functions that return Azure's message, in tables with
their sources. `check`, `diff`, `previewing` and `refreshing` emulate azure-native itself.
"""

from ebbtide_rehearsal.cloud.azure.directory import DIRECTORY, know
from ebbtide_rehearsal.cloud.azure.locks import lock
from ebbtide_rehearsal.cloud.azure.provider import AzureProvider
from ebbtide_rehearsal.cloud.azure.seeding import seed_cluster, seed_subnet

__all__ = ["DIRECTORY", "AzureProvider", "know", "lock", "seed_cluster", "seed_subnet"]
