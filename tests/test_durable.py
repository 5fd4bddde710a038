import hashlib
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from vaeiw_jax import durable
from vaeiw_jax.errors import UserError


def test_arrays_come_back_as_they_were(tmp_path):
    arrays = {"a": np.arange(7), "b.c": np.ones((2, 3), np.float32), "text": np.array(["x", "yz"])}
    durable.write_arrays(tmp_path / "deep" / "arrays.npz", arrays)
    again = durable.read_arrays(tmp_path / "deep" / "arrays.npz")
    assert list(again) == list(arrays)
    for name in arrays:
        assert again[name].dtype == arrays[name].dtype
        assert (again[name] == arrays[name]).all()


def test_equal_arrays_give_equal_bytes(tmp_path):
    for name in ("one", "two"):
        durable.write_arrays(tmp_path / name, {"a": np.arange(1000)})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    durable.write_bytes(path, b"old")

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="No space left") as caught:
        durable.write_bytes(path, b"new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("cut", [0, 10, 200])
def test_a_torn_file_is_named(tmp_path, cut):
    path = tmp_path / "arrays.npz"
    durable.write_arrays(path, {"a": np.arange(1000)})
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(UserError, match=r"arrays.npz is damaged"):
        durable.read_arrays(path)


def test_a_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "arrays.npz"
    durable.write_arrays(path, {"a": np.random.default_rng(0).integers(256, size=5000)})
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    with pytest.raises(UserError, match="damaged"):
        durable.read_arrays(path)


def test_torn_json_is_named(tmp_path):
    (tmp_path / "x.json").write_text('{"a": ')
    with pytest.raises(UserError, match=r"x.json is damaged"):
        durable.read_json(tmp_path / "x.json")


def test_an_error_of_an_open_file_names_it(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(OSError, match="Bad file descriptor") as caught, durable.errors_naming(path):
        os.fsync(10_000)
    assert caught.value.filename == str(path)


def test_arrays_of_the_same_bytes_have_different_digests():
    ones = np.ones(6, np.float32)
    several = [
        [("a", ones)],
        [("b", ones)],
        [("a", ones.view(np.int32))],
        [("a", ones.reshape(2, 3))],
        [("a", ones[:3]), ("b", ones[3:])],
        [("b", ones[3:]), ("a", ones[:3])],
    ]
    assert len({durable.arrays_digest(arrays) for arrays in several}) == len(several)
    assert durable.arrays_digest(iter(several[0])) == durable.arrays_digest(several[0])


def test_a_seal_does_not_depend_on_the_order_and_a_files_digest_is_what_it_is(tmp_path):
    assert durable.seal({"a": 1, "b": [2]}) == durable.seal({"b": [2], "a": 1})
    assert durable.seal({"a": 1}) == hashlib.sha256(b'{"a": 1}').hexdigest()
    (tmp_path / "file").write_bytes(b"abc")
    assert durable.file_digest(tmp_path / "file") == hashlib.sha256(b"abc").hexdigest()


def test_writers_of_one_file_that_have_the_same_process_number_leave_one_whole(tmp_path):
    """As on machines that share a directory; threads have one number, too."""
    path, contents = tmp_path / "file", [bytes([i]) * 100_000 for i in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(20):
            list(threads.map(lambda data: durable.write_bytes(path, data), contents))
            assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]
