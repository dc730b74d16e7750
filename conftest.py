"""A page stops at its first failing cell: nbval would run the rest, which can only fail as well.
And the files that take longest come first: of two processes that share the files out none is left
with one of them at the end."""

import pytest

FAILED = pytest.StashKey[set]()
LONGEST = (
    "mem2mem.ipynb",
    "test_devices.py",
    "test_train.py",
    "compare.ipynb",
    "test_processes.py",
    "hierarchical_transformer.ipynb",
    "test_snakefile.py",
    "test_runs.py",
    "windowed.ipynb",
    "test_models.py",
    "read_again.ipynb",
    "test_gpu_kernels.py",
    "start_here.ipynb",
    "test_properties_layers.py",
    "test_properties_runs.py",
    "baselines.ipynb",
)
# of the comparison: as it is in `make check`, and here
FEWER_PAPERS = "documents: int = 30", "documents: int = 10"


def pytest_addoption(parser):
    parser.addoption(
        "--long",
        action="store_true",
        help="run what takes long as well: whole pages and whole commands",
    )


def _is_cell(item) -> bool:
    return type(item).__name__ == "IPyNbCell"


def _of_fewer_papers(item) -> None:
    """As papermill sets a parameter; of fewer than ten papers the page has no interval."""
    if "parameters" in item.cell.metadata.get("tags", ()):
        assert FEWER_PAPERS[0] in item.cell.source
        item.cell.source = item.cell.source.replace(*FEWER_PAPERS)


def pytest_collection_modifyitems(items):
    for item in items:
        if _is_cell(item) and item.path.name == "compare.ipynb":
            _of_fewer_papers(item)
    items.sort(
        key=lambda item: (
            LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST)
        )
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if _is_cell(item) and outcome.get_result().failed:
        item.session.stash.setdefault(FAILED, set()).add(item.path)


def pytest_runtest_setup(item):
    if item.get_closest_marker("long") and not item.config.getoption("--long"):
        pytest.skip("takes long: make check")
    if _is_cell(item) and item.path in item.session.stash.get(FAILED, set()):
        pytest.skip("an earlier cell of this page failed")
