"""Who sends and who pays the gas, and that one at a time does."""

import threading

import pytest

from counterfoil.agent.wallet import Wallet
from counterfoil.chain.contracts import Write
from counterfoil.chain.errors import ChainError
from tests.support.chain import anvil, deploy, person

PATIENCE = 20


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    with anvil() as url:
        world = deploy(url, tmp_path_factory.mktemp("town"))
        yield world
        world.chain.close()


@pytest.fixture
def wallet_of(town, tmp_path):
    """A wallet of somebody with gas or without, and perhaps a relayer."""

    def make(name, gas=10**18, relayer=None, relayer_gas=10**18):
        town.rpc("anvil_setBalance", person(name).address, hex(gas))
        if relayer:
            town.rpc("anvil_setBalance", person(relayer).address, hex(relayer_gas))
        return Wallet(town.chain, person(name), tmp_path / "agent", person(relayer) if relayer else None)

    return make


def mint(town, wallet):
    return Write("TestToken.mint", town.token.contract.functions.mint(person("mint").address, 1))


def test_wallet__of_an_account__has_its_address_in_lower_case(wallet_of):
    assert wallet_of("anna").address == person("anna").address.lower()


def test_sender__with_gas__is_the_account_itself_whatever_relayer_there_is(town, wallet_of):
    wallet = wallet_of("anna", relayer="rita")
    assert wallet.pays()
    assert wallet.sender().address == wallet.address
    before = town.chain.web3.eth.get_transaction_count(person("anna").address)
    wallet.carry(mint(town, wallet))
    assert town.chain.web3.eth.get_transaction_count(person("anna").address) == before + 1


def test_sender__without_gas__is_the_relayer(town, wallet_of):
    wallet = wallet_of("bert", gas=1, relayer="rita")
    assert not wallet.pays()
    assert wallet.sender().address == person("rita").address.lower()
    before = [town.chain.web3.eth.get_transaction_count(person(name).address) for name in ("bert", "rita")]
    wallet.carry(mint(town, wallet))
    after = [town.chain.web3.eth.get_transaction_count(person(name).address) for name in ("bert", "rita")]
    assert after == [before[0], before[1] + 1]


def test_sender__without_any_gas__says_whom_to_send_it(wallet_of):
    with pytest.raises(ChainError) as raised:
        wallet_of("bert", gas=0).sender()
    assert str(raised.value) == (
        f"The wallet {person('bert').address.lower()} has no gas: send it some of the chain's coin, or name a relayer "
        "that has gas with COUNTERFOIL_RELAYER_KEYSTORE."
    )
    with pytest.raises(ChainError, match=f"and its relayer {person('rita').address.lower()} has none either"):
        wallet_of("bert", gas=0, relayer="rita", relayer_gas=0).sender()


def test_submit__of_what_was_signed__sends_it_once_and_again_gives_the_same(town, wallet_of):
    wallet = wallet_of("carl")
    signed = wallet.sign(mint(town, wallet))
    assert town.chain.web3.eth.get_transaction_count(person("carl").address) == 0
    first, again = wallet.submit(signed), wallet.submit(signed)
    assert first.transaction == again.transaction == signed.transaction
    assert town.chain.web3.eth.get_transaction_count(person("carl").address) == 1


def test_is_lost__of_a_signed_transaction__says_whether_another_took_its_place(town, wallet_of):
    wallet = wallet_of("dirk")
    signed = wallet.sign(mint(town, wallet))
    assert not wallet.is_lost(signed)
    wallet.send(Write("Token.approve", town.token.contract.functions.approve(person("mint").address, 1)))
    assert wallet.is_lost(signed)


def test_turn__within_a_turn__goes_on(wallet_of):
    wallet = wallet_of("anna")
    with wallet.turn(), wallet.turn():
        pass
    with wallet.turn():
        pass


@pytest.mark.parametrize("same", [True, False])
def test_turn__of_others__waits_until_the_first_is_done(wallet_of, same):
    first = wallet_of("anna")
    second = first if same else wallet_of("anna")
    order, asked = [], threading.Event()

    def wait():
        asked.set()
        with second.turn():
            order.append("second")

    with first.turn():
        thread = threading.Thread(target=wait)
        thread.start()
        assert asked.wait(PATIENCE)
        order.append("first")
    thread.join(PATIENCE)
    assert order == ["first", "second"]


def test_turn__of_another_account__does_not_wait(wallet_of):
    with wallet_of("anna").turn(), wallet_of("bert").turn():
        pass


def test_turn__that_ended_in_an_error__is_over(wallet_of):
    wallet = wallet_of("anna")
    with pytest.raises(RuntimeError, match="on purpose"), wallet.turn():
        raise RuntimeError("on purpose")
    with wallet_of("anna").turn():
        pass


def test_send__from_many_threads__gives_each_its_own_nonce(town, wallet_of):
    wallet = wallet_of("emma")
    threads = [threading.Thread(target=wallet.send, args=(mint(town, wallet),)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert town.chain.web3.eth.get_transaction_count(person("emma").address) == 6
