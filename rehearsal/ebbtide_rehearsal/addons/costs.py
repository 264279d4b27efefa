"""The cost recorder, which is a part of Ebbtide and runs as a process."""

from typing import Final

from ebbtide_rehearsal.addons.definition import Rehearsed

REHEARSED: Final = Rehearsed()
