import os

import pytest

from vaeiw_jax.cores import usable_cores

AFFINE = len(os.sched_getaffinity(0))


def files(root, contents):
    for name, text in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("contents", "cores"),
    [
        ({}, AFFINE),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, AFFINE),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "100000 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "150000 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cpu.max": "20000 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/b/cpu.max": "20000 100000\n"}, AFFINE),
        (
            {
                "proc/self/cgroup": "5:memory:/\n4:cpu,cpuacct:/job\n",
                "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "100000\n",
                "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
            },
            1,
        ),
    ],
    ids=["none", "no ration", "ration", "around", "less than one", "another's", "version 1"],
)
def test_a_ration_of_the_group_or_of_one_around_it_counts(tmp_path, contents, cores):
    files(tmp_path, contents)
    assert usable_cores(tmp_path) == cores


def test_affinity_counts():
    usable = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, [min(usable)])
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, usable)
