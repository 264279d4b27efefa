"""Scenarios: what is done to a stack, and what must come of it.

`model` is the file as it is written, `conditions` what may be expected, `observing` where it is looked up,
`steps` what each step does, `playing` the whole.
"""

from ebbtide.rehearsal.scenarios.model import Scenario
from ebbtide.rehearsal.scenarios.reading import ScenarioError, built_in, chosen, read

__all__ = ["Scenario", "ScenarioError", "built_in", "chosen", "read"]
