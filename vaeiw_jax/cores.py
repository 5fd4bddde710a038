"""How many cores this process may keep busy."""

import os
from collections.abc import Iterator
from pathlib import Path


def usable_cores(root: Path = Path("/")) -> int:
    """Those of its affinity, or fewer if a control group it is in has a ration.

    Args:
      root: of the file system that tells.
    """
    affine = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return max(1, int(min([affine, *_rations(root)])))


def _rations(root: Path) -> Iterator[float]:
    """What the group of this process, and each group around it, may use, in cores."""
    groups = root / "proc/self/cgroup"
    for line in groups.read_text().splitlines() if groups.exists() else ():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / ("cpu" if controllers else "")  # named: version 1
        inside = Path(path.lstrip("/"))
        for group in (inside, *inside.parents):
            yield from _ration(top / group)


def _ration(group: Path) -> Iterator[float]:
    if (group / "cpu.max").exists():
        quota, _, period = (group / "cpu.max").read_text().partition(" ")
    elif (group / "cpu.cfs_quota_us").exists():
        quota = (group / "cpu.cfs_quota_us").read_text()
        period = (group / "cpu.cfs_period_us").read_text()
    else:
        return
    if quota.strip() not in ("max", "-1"):
        yield int(quota) / int(period)
