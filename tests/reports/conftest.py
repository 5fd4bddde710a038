"""A browser for the pages, and what the inspection tests have to look into."""

import pytest

from tests import browser
from tests.inspection.conftest import model_of, record

__all__ = ["model_of", "record"]


@pytest.fixture(scope="session")
def tab(tmp_path_factory):
    if browser.find() is None:
        pytest.skip(f"no browser is installed ({', '.join(browser.NAMES)})")
    with browser.browser(tmp_path_factory.mktemp("profile")) as tab:
        yield tab
