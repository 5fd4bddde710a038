from pathlib import Path

import pytest

from tests.experiments import evaluations


@pytest.fixture(scope="session")
def undisturbed_workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the tiny evaluation, made by the local engine with nothing in its way."""
    directory: Path = tmp_path_factory.mktemp("undisturbed")
    evaluations.evaluate(directory, *evaluations.TINY)
    return directory


@pytest.fixture(scope="session")
def undisturbed(undisturbed_workdir: Path) -> dict[str, bytes]:
    """Its records."""
    return evaluations.records(undisturbed_workdir)
