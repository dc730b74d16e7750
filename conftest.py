"""A page stops at its first failing cell: nbval would run the rest, which can only fail as well."""

import pytest

FAILED = pytest.StashKey[set]()


def _is_cell(item) -> bool:
    return type(item).__name__ == "IPyNbCell"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if _is_cell(item) and outcome.get_result().failed:
        item.session.stash.setdefault(FAILED, set()).add(item.path)


def pytest_runtest_setup(item):
    if _is_cell(item) and item.path in item.session.stash.get(FAILED, set()):
        pytest.skip("an earlier cell of this page failed")
