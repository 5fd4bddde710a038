"""What the system refused, in a sentence."""

import errno
import os
from pathlib import Path

import pytest

from vaeiw_jax.errors import describe


def refusal(number: int, *path: str) -> OSError:
    return OSError(number, os.strerror(number), *path)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (refusal(errno.ENOSPC, "runs/a"), "no space left to write runs/a; make some"),
        (refusal(errno.ENOSPC), "no space left; make some"),
        (refusal(errno.EACCES, "frames.npz"), "no permission to use frames.npz; change"),
        (refusal(errno.EROFS, "runs/a"), "runs/a cannot be written (Read-only file system)"),
        (refusal(errno.EPIPE), "Broken pipe"),
        (OSError("cannot do that"), "cannot do that"),
        (OSError(), "OSError"),
    ],
)
def test_a_sentence_names_the_file_if_there_is_one(error: OSError, sentence: str) -> None:
    said = describe(error)
    assert said.startswith(sentence)
    assert "None" not in said


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError) as refused:  # noqa: PT011
        (tmp_path / "none").read_bytes()
    assert describe(refused.value) == f"{tmp_path / 'none'}: No such file or directory"
