"""Fixtures of pytest: `lab` is a world per test, `deferd_lab` the lab of the whole run."""
import pytest

from deferd_lab import Lab


@pytest.fixture(scope="session")
def deferd_lab():
    lab = Lab()
    yield lab
    lab.stop()


@pytest.fixture
def lab(deferd_lab, request):
    """A world. `@pytest.mark.lab(seed=7, config={...})` gives it options."""
    with deferd_lab.world(**getattr(request.node.get_closest_marker("lab"), "kwargs", {})) as world:
        yield world


def pytest_configure(config):
    config.addinivalue_line("markers", "lab(**options): options of the world of the fixture `lab`, such as seed and config")
