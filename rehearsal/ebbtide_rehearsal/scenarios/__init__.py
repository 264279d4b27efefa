"""Scenarios: steps on a stack, and expectations of their results.

`model` defines the file format, `conditions` the expectations, `observing` the snapshots they are checked
against, `performing` the steps, `playing` the whole.
"""

from ebbtide_rehearsal.scenarios.files import ScenarioError, built_in, chosen, read
from ebbtide_rehearsal.scenarios.model import Scenario

__all__ = ["Scenario", "ScenarioError", "built_in", "chosen", "read"]
