from pathlib import Path

import pytest

from tests import train_process
from tests.experiments import evaluations


@pytest.fixture(scope="session")
def undisturbed_workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the tiny evaluation, made by the local engine with nothing in its way."""
    return train_process.once(
        tmp_path_factory,
        "undisturbed",
        lambda to: evaluations.finish(evaluations.start(to, *evaluations.TINY)),
    )


@pytest.fixture(scope="session")
def undisturbed(undisturbed_workdir: Path) -> dict[str, bytes]:
    """Its records."""
    return evaluations.records(undisturbed_workdir)
