import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from vaeiw_jax import durable, workdirs
from vaeiw_jax.errors import UserError


def test_of_several_that_claim_a_directory_at_once_one_owns_it(tmp_path):
    at_once = threading.Barrier(8)

    def claim(place, seed):
        at_once.wait()
        try:
            workdirs.claim(place, {"seed": seed})
            return seed
        except UserError as error:
            return str(error)

    with ThreadPoolExecutor(8) as threads:
        for attempt in range(20):
            place = tmp_path / str(attempt)
            owners = [*threads.map(claim, [place] * 8, range(8))]
            (owner,) = [answer for answer in owners if isinstance(answer, int)]
            refused = [answer for answer in owners if isinstance(answer, str)]
            assert all(f"holds results with seed={owner}" in answer for answer in refused)
            assert durable.read_json(place / "config.json") == {"seed": owner}


def test_what_a_directory_does_not_name_had_its_default(tmp_path):
    workdirs.claim(tmp_path, {"seed": 1})
    workdirs.claim(tmp_path, {"seed": 1, "young": 5}, defaults={"young": 5})
    with pytest.raises(UserError, match=r"holds results with young=5, .* this run has young=6"):
        workdirs.claim(tmp_path, {"seed": 1, "young": 6}, defaults={"young": 5})
    workdirs.claim(tmp_path, {"seed": 1, "young": 6}, may_differ=("young",))
