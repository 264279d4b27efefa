"""Fake of azure-native 3.29 and of the part of Azure that the program uses."""
