"""What happens in node pools: nodes that come and go, and what runs on them.

`growing`, `shrinking`, `queueing` and `reclaiming` decide, as pure functions of what `cluster` has read;
`hands` does it; `processes` runs pods as processes of this machine; `loop` goes round.
"""

from ebbtide_rehearsal.cloud.nodes.loop import Nodes
from ebbtide_rehearsal.cloud.nodes.settings import Settings

__all__ = ["Nodes", "Settings"]
