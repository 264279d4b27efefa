"""Fake of pulumi-gcp 10.2 and of the APIs behind it, as far as the program uses them."""
