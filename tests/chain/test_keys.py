import json

import pytest
from eth_account import Account

from counterfoil.chain.errors import ChainError
from counterfoil.chain.keys import OWN, RELAYER, load_account, load_relayer, named_address
from tests.support.chain import person

ALICE = person("alice")
KEY, KEYSTORE, PASSWORD = OWN.key, OWN.keystore, OWN.password


@pytest.fixture(scope="module")
def keystore(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "alice.json"
    path.write_text(json.dumps(Account.encrypt(ALICE.key, "open sesame", iterations=2)))
    return path


def test_load_account__with_a_key__is_its_account():
    assert load_account({KEY: ALICE.key.hex()}).address == ALICE.address


def test_load_account__with_a_keystore__opens_it_by_environment_or_by_asking(keystore):
    named = {KEYSTORE: str(keystore)}

    assert load_account(named | {PASSWORD: "open sesame"}).address == ALICE.address
    assert load_account(named, lambda: "open sesame").address == ALICE.address


@pytest.mark.parametrize("key", ["secret", "0x" + "00" * 32, "0x12", "zz" * 32])
def test_load_account__with_no_key__never_repeats_it(key):
    with pytest.raises(ChainError) as refused:
        load_account({KEY: key})

    assert str(refused.value) == f"{KEY} is no private key: give 0x and 64 hexadecimal digits."
    assert refused.value.__cause__ is None


def test_load_account__with_nothing__says_what_to_set():
    with pytest.raises(ChainError, match=f"set {KEYSTORE} to an encrypted keystore file, or {KEY}"):
        load_account({})


def test_load_account__with_a_wrong_or_missing_password__says_so(keystore):
    with pytest.raises(ChainError, match="does not open with that password"):
        load_account({KEYSTORE: str(keystore), PASSWORD: "no"})
    with pytest.raises(ChainError, match=f"needs its password: set {PASSWORD}"):
        load_account({KEYSTORE: str(keystore)})


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"crypto": {}}',
        '{"crypto": {"kdfparams": {"n": 1099511627776, "r": 8, "p": 1}}}',
        '{"crypto": {"kdfparams": {"n": 2, "r": 8, "p": 1000000}}}',
        '{"crypto": {"kdfparams": {"c": 99999999999}}}',
        '{"crypto": {"kdfparams": {"n": "2"}}}',
        '{"crypto": {"kdfparams": {"n": -1}}}',
    ],
)
def test_load_account__with_a_hostile_keystore__refuses_before_it_computes(tmp_path, content):
    (tmp_path / "key.json").write_text(content)
    with pytest.raises(ChainError, match=f"check {KEYSTORE}"):
        load_account({KEYSTORE: str(tmp_path / "key.json"), PASSWORD: "x"})


def test_load_account__with_no_such_keystore__says_so(tmp_path):
    with pytest.raises(ChainError, match="cannot be read"):
        load_account({KEYSTORE: str(tmp_path / "none"), PASSWORD: "x"})


def test_load_relayer__named_or_not__is_an_account_of_its_own():
    assert load_relayer({KEY: ALICE.key.hex()}) is None
    assert load_relayer({KEY: ALICE.key.hex(), RELAYER.key: person("rita").key.hex()}).address == person("rita").address
    with pytest.raises(ChainError, match=f"{RELAYER.key} is no private key"):
        load_relayer({RELAYER.key: "secret"})


def test_named_address__of_a_key_or_a_keystore__is_theirs_without_a_password(keystore):
    assert named_address({KEY: ALICE.key.hex()}) == ALICE.address.lower()
    assert named_address({KEYSTORE: str(keystore)}) == ALICE.address.lower()
    assert named_address({}) is None


@pytest.mark.parametrize("said", ["", "0x12", "z" * 40, 7, None])
def test_named_address__of_a_keystore_that_does_not_say__is_unknown(keystore, tmp_path, said):
    path = tmp_path / "other.json"
    path.write_text(json.dumps(json.loads(keystore.read_text()) | {"address": said}))

    assert named_address({KEYSTORE: str(path)}) is None


def test_named_address__of_no_keystore__says_which_variable_to_check(tmp_path):
    with pytest.raises(ChainError, match=KEYSTORE):
        named_address({KEYSTORE: str(tmp_path / "none.json")})
