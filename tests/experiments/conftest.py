from pathlib import Path

import pytest

from tests.experiments import evaluations


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The records of the tiny evaluation, made by the local engine with nothing in its way."""
    directory: Path = tmp_path_factory.mktemp("undisturbed")
    return evaluations.evaluate(directory, *evaluations.TINY)
