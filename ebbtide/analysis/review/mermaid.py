"""Mermaid diagram of work, node pools and machines."""

import re
from collections.abc import Iterator

from ebbtide.analysis.preview.report import PoolReport, Preview
from ebbtide.analysis.preview.words import accelerator_words, nodes_words
from ebbtide.analysis.review.topology import entries, fallbacks

_PLAIN = re.compile(r"[^\w ./:,+=()-]")


def flowchart(preview: Preview) -> Iterator[str]:
    """Yield the lines of a flowchart: queues and other work, their pools, and fallbacks."""
    yield "flowchart LR"
    for number, entry in enumerate(entries(preview.pools)):
        label = _label(entry.label)
        yield f'  w{number}["{label}"]' if entry.is_queue else f'  w{number}(["{label}"])'
        for pool in entry.pools:
            yield f"  w{number} --> p{pool}"
    by_cluster: dict[str, list[tuple[int, PoolReport]]] = {}
    for number, pool in enumerate(preview.pools):
        by_cluster.setdefault(pool.cluster, []).append((number, pool))
    for number, (cluster, pools) in enumerate(by_cluster.items()):
        yield f'  subgraph c{number}["{_label(cluster)}"]'
        for index, pool in pools:
            yield f'    p{index}["{_pool(pool)}"]'
        yield "  end"
    for pool, fallback in fallbacks(preview.pools):
        yield f"  p{pool} -. no stock .-> p{fallback}"


def _pool(pool: PoolReport) -> str:
    nodes = f"{nodes_words(pool.nodes)} {'node' if pool.nodes.fixed == 1 else 'nodes'}, {pool.capacity}"
    lines = (pool.name, pool.machine, accelerator_words(pool), nodes)
    return "<br/>".join(_label(line) for line in lines if line)


def _label(text: str) -> str:
    """Escape a label with Mermaid's character codes, such as `#34;`."""
    return _PLAIN.sub(lambda match: f"#{ord(match[0])};", text) or " "
