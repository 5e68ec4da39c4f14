import ape
import pytest


@pytest.mark.rule("NR-29")
def test_release__by_court__takes_one_hold_back(world):
    for _ in range(2):
        world.registry.hold(1, sender=world.court)
    world.registry.release(1, sender=world.court)
    assert world.registry.nodes(1).holds == 1


@pytest.mark.rule("NR-29")
def test_release__without_hold__reverts(world):
    with ape.reverts("registry: no hold"):
        world.registry.release(1, sender=world.court)


@pytest.mark.rule("NR-28")
def test_release__by_anybody_else__reverts(world):
    world.registry.hold(1, sender=world.court)
    with ape.reverts("registry: not the court"):
        world.registry.release(1, sender=world.operator)


@pytest.mark.rule("NR-28")
def test_release__of_unknown_node__reverts(world):
    with ape.reverts("registry: unknown node"):
        world.registry.release(3, sender=world.court)
