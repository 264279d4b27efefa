"""The stand-in of the azure-native provider, and of as much of Azure as the program asks it for.

`provider.py` is what azure-native itself does (3.29: names, checks, differences, refresh), the same for every
type; `kinds.py` has the types, a row each, from the files that are called after what they are about. A rule
is a function that returns Azure's refusal, and stands in a table with where it was read.
"""

from ebbtide_rehearsal.cloud.azure.directory import DIRECTORY, know
from ebbtide_rehearsal.cloud.azure.locks import lock
from ebbtide_rehearsal.cloud.azure.provider import AzureProvider
from ebbtide_rehearsal.cloud.azure.seeding import seed_cluster, seed_subnet

__all__ = ["DIRECTORY", "AzureProvider", "know", "lock", "seed_cluster", "seed_subnet"]
