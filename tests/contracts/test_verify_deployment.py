"""What `ape run verify_deployment` says of a registry whose court is not the deployment's."""

import pytest
from eth_utils import keccak

from tests.contracts.world import EMPTY, MIN_STAKE, STAKE_PER_SLOT, UNBONDING_PERIOD


@pytest.fixture
def verify_deployment(project, monkeypatch):
    """The script, with the project of these tests."""
    from scripts import verify_deployment

    monkeypatch.setattr(verify_deployment, "project", project)
    return verify_deployment


def entry(world, registry, court):
    """What the deployment file says of a registry."""
    arguments = {
        "stake_token": str(world.token.address),
        "min_stake": str(MIN_STAKE),
        "stake_per_slot": str(STAKE_PER_SLOT),
        "unbonding_period": str(UNBONDING_PERIOD),
        "court": str(court),
    }
    code = bytes(world.chain.provider.get_code(registry.address))
    return {"address": str(registry.address), "arguments": arguments, "code_hash": "0x" + keccak(code).hex()}


def faults(script, world, registry, court, **others):
    contracts = {"NodeRegistry": entry(world, registry, court), **others}
    return list(script.faults("NodeRegistry", contracts["NodeRegistry"], world.chain.provider, contracts))


def test_faults__of_a_registry_whose_court_is_no_contract_of_the_file__say_what_it_can_do(verify_deployment, world):
    assert faults(verify_deployment, world, world.registry, world.court) == [
        f"court is {world.court}, which can take every stake, and the deployment has no DisputeCourt"
    ]


def test_faults__of_a_registry_with_another_court__name_both(verify_deployment, world):
    court = {"address": str(world.manager.address)}
    assert faults(verify_deployment, world, world.registry, world.court, DisputeCourt=court) == [
        f"court is {world.court}, and the deployment's DisputeCourt is {world.manager.address}"
    ]


def test_faults__of_a_registry_with_its_court_or_with_none__are_none(verify_deployment, world):
    court = {"address": str(world.court)}
    assert faults(verify_deployment, world, world.registry, world.court, DisputeCourt=court) == []
    parameters = (world.token, MIN_STAKE, STAKE_PER_SLOT, UNBONDING_PERIOD)
    free = world.deployer.deploy(world.project.NodeRegistry, *parameters, EMPTY)
    assert faults(verify_deployment, world, free, EMPTY) == []
