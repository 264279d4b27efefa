"""Rules for container images that are preloaded on nodes or streamed."""

import re
from collections.abc import Iterator

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import PoolIn, pool_rule

_NO_POOL = "GKE refuses to create the node pool."
_PRELOADING = "GKE docs, data-container-image-preloading (2026)"
_IMAGE = re.compile(r"(projects/[^/]+/)?global/images/[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_MOST_DISKS = 127


@pool_rule("secondary boot disk image", _PRELOADING, CloudKind.GKE)
def _image_names(pool: PoolIn) -> Iterator[Fault]:
    for number, disk in enumerate(pool.pool.secondary_boot_disks):
        if not _IMAGE.fullmatch(disk.disk_image):
            yield Fault(
                pool.at(f"secondaryBootDisks[{number}].diskImage"),
                f"{disk.disk_image} is not the name of a disk image.",
                _NO_POOL,
                "Write global/images/NAME, or projects/PROJECT/global/images/NAME.",
            )


@pool_rule(
    "maximum secondary boot disks",
    "hashicorp/terraform-provider-google-beta 7.45.0, node_config.go: secondary_boot_disks, MaxItems",
    CloudKind.GKE,
)
def _not_too_many(pool: PoolIn) -> Iterator[Fault]:
    count = len(pool.pool.secondary_boot_disks)
    if count > _MOST_DISKS:
        yield Fault(
            pool.at("secondaryBootDisks"),
            f"The pool has {count} secondary boot disks.",
            _NO_POOL,
            f"Write at most {_MOST_DISKS}.",
        )


@pool_rule("secondary boot disk needs image streaming", _PRELOADING, CloudKind.GKE)
def _needs_streaming(pool: PoolIn) -> Iterator[Fault]:
    cached = any(disk.mode is not None for disk in pool.pool.secondary_boot_disks)
    if cached and pool.pool.image_streaming is False:
        yield Fault(
            pool.at("imageStreaming"),
            "The pool has a secondary boot disk with container images, and imageStreaming is false.",
            "Containers could not use the disk.",
            "Remove imageStreaming.",
        )


@pool_rule("image streaming needs cos", "GKE docs, image-streaming (2026)", CloudKind.GKE)
def _needs_cos(pool: PoolIn) -> Iterator[Fault]:
    cached = any(disk.mode is not None for disk in pool.pool.secondary_boot_disks)
    if (cached or pool.pool.image_streaming) and pool.pool.image == "ubuntu":
        yield Fault(
            pool.at("image"),
            "GKE supports image streaming only with the image cos, and the image is ubuntu.",
            _NO_POOL,
            "Omit image for cos.",
        )
