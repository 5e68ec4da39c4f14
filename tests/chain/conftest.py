import pytest

from tests.support.chain import MIN_STAKE, anvil, deploy


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    with anvil() as url:
        made = deploy(url, tmp_path_factory.mktemp("home"))
        for i in range(3):
            made.node(f"operator{i}", MIN_STAKE * (i + 1), 100 + i)
        try:
            yield made
        finally:
            made.chain.close()
