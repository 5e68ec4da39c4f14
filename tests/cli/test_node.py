"""What an operator does to its node on a real chain: registering, moving it, its capabilities, and who may sign."""

import json

import pytest
from eth_account import Account

from counterfoil.chain.keys import OWN
from tests.support.chain import MIN_STAKE, STAKE_PER_SLOT, person


def words(text):
    """Printed sentences without their line breaks."""
    return " ".join(text.split())


@pytest.fixture(scope="module")
def anna(town):
    """A node of anna's with one service; gives the node's id."""
    return town.registry.service(town.node("anna", MIN_STAKE * 2, 100)).node_id


def test_register__with_a_key__registers_stakes_and_names_the_next_step(town, operate):
    town.by("rita")
    found = operate("register", "--endpoint", "https://rita.example", "--stake", MIN_STAKE, "--yes", by="rita")
    node_id = town.registry.node_count()
    node = town.registry.node(node_id)

    assert (found.code, found.err) == (0, "")
    assert (node.operator, node.endpoint, node.stake) == (
        town.by("rita").address, "https://rita.example", MIN_STAKE
    )  # fmt: skip
    assert f"done: register a node at https://rita.example with a stake of {MIN_STAKE:,}" in found.out
    assert words(found.out).endswith(
        f"Node {node_id} is registered. A stake of {MIN_STAKE:,} pays for 2 sessions at a time. "
        f"Next: counterfoil node list-service {node_id} --category ... --price ..."
    )


def test_register__without_an_allowance__approves_first(town, operate):
    sender = town.by("alba")
    sender.send(town.token.approve(town.registry.address, 0))
    found = operate("register", "--endpoint", "https://alba.example", "--stake", 7, "--yes", "--json", by="alba")

    assert found.code == 0
    assert found.json["node_id"] == town.registry.node_count()
    assert len(found.json["transactions"]) == 2
    assert town.token.allowance(sender.address, town.registry.address) == 0
    assert [line.split(" (block")[0] for line in found.err.splitlines()] == [
        f"done: let {town.registry.address} take 7 of the token {town.token.address}",
        "done: register a node at https://alba.example with a stake of 7",
    ]


def test_register__in_a_dry_run_from_an_account__asks_the_chain_and_sends_nothing(town, operate):
    address = town.by("anna").address
    before = town.chain.head().number
    count = town.registry.node_count()
    found = operate(
        "register", "--endpoint", "https://a.example", "--stake", MIN_STAKE, "--dry-run", "--json", "--from", address
    )

    assert (found.code, found.err) == (0, "")
    assert (found.json["dry_run"], found.json["from"]) == (True, address)
    (step,) = found.json["steps"]
    assert step["sentence"] == f"register a node at https://a.example with a stake of {MIN_STAKE:,}"
    assert step["accepted"] is True
    assert 100_000 < step["gas"] < 1_000_000
    assert found.json["notes"] == [
        f"{address} holds {town.token.balance_of(address):,} of the token {town.token.address}, which is enough.",
        f"A stake of {MIN_STAKE:,} pays for {MIN_STAKE // STAKE_PER_SLOT} sessions at a time.",
    ]
    assert (town.chain.head().number, town.registry.node_count()) == (before, count)


def test_register__in_a_dry_run_of_nobody__says_what_was_not_checked(operate):
    found = operate("register", "--endpoint", "https://a.example", "--stake", 5, "--dry-run")
    said = words(found.out)

    assert found.code == 0
    assert "1. let 0x" in said
    assert "not asked of the chain, because nobody is named who sends it" in said
    assert "not asked of the chain, because it needs the step before it" in said
    assert "Balance and allowance were not looked at, since nobody is named: give --from ADDRESS." in said
    assert said.endswith("Nothing was sent: this was a dry run. To send it, leave --dry-run out.")


def test_register__in_a_dry_run_without_allowance__asks_only_for_the_approval(town, operate):
    town.by("alma").send(town.token.approve(town.registry.address, 0))
    found = operate("register", "--endpoint", "https://a.example", "--stake", 9, "--dry-run", "--json", by="alma")

    assert [(step["accepted"], step["gas"] is None) for step in found.json["steps"]] == [(True, False), (None, True)]


@pytest.mark.parametrize("how", ["--dry-run", "--yes"])
def test_register__with_more_than_the_balance__is_refused_with_what_is_missing(town, operate, how):
    address = town.by("anna").address
    held = town.token.balance_of(address)
    found = operate("register", "--endpoint", "https://a.example", "--stake", held + 5, how, by="anna")

    assert (found.code, found.out) == (2, "")
    assert found.err == (
        f"{address} holds {held:,} of the stake token {town.token.address}, and {held + 5:,} are needed: "
        "send it 5 more, or stake less.\n"
    )


@pytest.mark.parametrize(
    "url", ["", "node.example", "ftp://node.example", "https://", "https://u:p@node.example", "http://a b", "http://é",
            "https://node.example:0", "https://node.example:99999", "https://" + "a" * 249],
)  # fmt: skip
def test_register__at_no_endpoint__is_refused_before_the_chain_is_asked(operate, url):
    found = operate("register", "--endpoint", url, "--stake", 1, "--dry-run")

    assert (found.code, found.out) == (2, "")
    assert "give a URL such as https://node.example, without credentials" in found.err


def test_register__with_from_beside_another_key__is_refused(town, operate):
    stated = town.by("rita").address
    found = operate("register", "--endpoint", "https://a.example", "--stake", 1, "--yes", "--from", stated, by="anna")

    assert (found.code, found.out) == (2, "")
    assert found.err.startswith(f"The key is of {town.by('anna').address}, --from names {stated}")


def test_set_endpoint__of_a_node__moves_it(town, operate, anna):
    found = operate("set-endpoint", anna, "https://moved.example", "--yes", "--json", by="anna")

    assert found.code == 0
    assert town.registry.node(anna).endpoint == "https://moved.example"
    assert (found.json["node_id"], found.json["endpoint"]) == (anna, "https://moved.example")
    (sent,) = found.json["transactions"]
    assert sent["block"] == town.chain.head().number
    again = operate("set-endpoint", anna, "https://moved.example", "--yes", "--json", by="anna")
    assert again.json == {"node_id": anna, "endpoint": "https://moved.example", "transactions": []}
    assert town.chain.head().number == sent["block"]


def test_capability__on_and_off__is_what_the_chain_says(town, operate, anna):
    on = operate("capability", anna, "routing.v1", "on", "--yes", by="anna")

    assert words(on.out).endswith(
        f"The capability routing.v1 of node {anna} is on. Next: counterfoil node status {anna}"
    )
    assert town.registry.has_capability(anna, "routing.v1")
    assert operate("capability", anna, "routing.v1", "on", "--yes", by="anna").out == (
        f"The capability routing.v1 of node {anna} is on already: nothing was sent.\n"
        f"Next: counterfoil node status {anna}\n"
    )
    off = operate("capability", anna, "routing.v1", "off", "--yes", "--json", by="anna")
    assert (off.json["capability"], off.json["enabled"], len(off.json["transactions"])) == ("routing.v1", False, 1)
    assert not town.registry.has_capability(anna, "routing.v1")


@pytest.mark.parametrize("how", ["--dry-run", "--yes"])
def test_capability__that_is_malformed__is_refused_by_the_chain_with_the_grammar(town, operate, anna, how):
    before = town.chain.head().number
    found = operate("capability", anna, "Routing", "on", how, by="anna")

    assert (found.code, found.out) == (2, "")
    assert found.err.startswith(
        f"The chain refuses to switch the capability Routing of node {anna} on: registry: malformed capability. "
        "Use small letters"
    )
    assert town.chain.head().number == before


def test_capability__of_65_bytes__is_refused_before_the_chain_is_asked(operate, anna):
    assert "at most 64 bytes are stored: shorten it" in operate("capability", anna, "a" * 65, "on", "--dry-run").err


COMMANDS = [
    ("set-endpoint", "NODE", "https://other.example"),
    ("capability", "NODE", "other.v1", "on"),
    ("stake", "NODE", 5),
    ("unstake", "NODE", 5),
    ("list-service", "NODE", "--category", "a:b", "--price", 5),
    ("set-price", "SERVICE", 7),
    ("pause-service", "SERVICE"),
    ("withdraw", "NODE"),
    ("withdraw", "NODE", "--earnings"),
]


def named(command, town, node_id):
    service = next(one for one in range(1, 99) if town.registry.service(one).node_id == node_id)
    return [{"NODE": node_id, "SERVICE": service}.get(word, word) for word in command]


@pytest.mark.parametrize("how", ["--dry-run", "--yes"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(map(str, words)))
def test_command__with_another_operators_key__is_told_before_anything_is_sent(town, operate, anna, command, how):
    stranger = town.by("bert").address
    before = town.chain.head().number
    found = operate(*named(command, town, anna), how, by="bert")

    assert (found.code, found.out) == (2, "")
    assert found.err == (
        f"Node {anna} is run by {town.by('anna').address}, this key is of {stranger}: "
        "set COUNTERFOIL_KEYSTORE to the file of the first one.\n"
    )
    assert town.chain.head().number == before


@pytest.mark.parametrize("command", COMMANDS[:-2], ids=lambda words: " ".join(map(str, words)))
def test_command__in_a_dry_run_without_a_key__is_asked_as_the_operator(town, operate, anna, command):
    before = town.chain.head().number
    found = operate(*named(command, town, anna), "--dry-run", "--json")

    assert (found.code, found.err) == (0, "")
    assert found.json["from"] == town.by("anna").address
    assert [step["accepted"] for step in found.json["steps"]] == [True]
    assert town.chain.head().number == before


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(map(str, words)))
def test_command__for_a_node_or_service_that_is_not_there__is_refused_with_the_list(operate, command):
    found = operate(*[{"NODE": 999, "SERVICE": 999}.get(word, word) for word in command], "--dry-run")

    assert (found.code, found.out) == (2, "")
    assert found.err in {"There is no node 999: see `counterfoil nodes`.\n",
                         "There is no service 999: see `counterfoil services`.\n"}  # fmt: skip


def test_command__without_a_key__says_where_keys_come_from(operate, anna):
    found = operate("stake", anna, 5, "--yes")

    assert (found.code, found.out) == (2, "")
    assert "set COUNTERFOIL_KEYSTORE to an encrypted keystore file" in found.err


def test_command__without_yes_off_a_terminal__sends_nothing(town, operate, anna):
    before = town.chain.head().number
    found = operate("stake", anna, 5, by="anna")

    assert found.code == 2
    assert found.err == "Nothing was sent: say --yes to send without being asked, or --dry-run to see what would be.\n"
    assert town.chain.head().number == before


def test_command__without_gas__is_told_before_it_is_sent(town, operate, anna):
    town.rpc("anvil_setBalance", town.by("anna").address, "0x0")
    try:
        refused = operate("stake", anna, 5, "--yes", by="anna")
        told = operate("stake", anna, 5, "--dry-run", "--json", by="anna")
    finally:
        town.rpc("anvil_setBalance", town.by("anna").address, hex(10**21))

    assert refused.code == 2
    assert "holds nothing of the chain's own coin to pay gas with: send it some." in refused.err
    assert (told.code, "coin to pay gas with" in told.json["notes"][-1]) == (0, True)


@pytest.fixture
def keystore(tmp_path, monkeypatch):
    """Anna's keystore file in the environment."""
    path = tmp_path / "anna.json"
    document = Account.encrypt(person("anna").key, "open sesame", kdf="pbkdf2", iterations=2)
    path.write_text(json.dumps(document))
    monkeypatch.setenv(OWN.keystore, str(path))
    return path


def test_dry_run__with_a_keystore__needs_no_password(town, operate, anna, keystore):
    found = operate("stake", anna, 5, "--dry-run", "--json")

    assert (found.code, found.json["from"]) == (0, town.by("anna").address)


def test_dry_run__with_the_keystore_of_another__is_told(town, operate, anna, keystore):
    document = json.loads(keystore.read_text()) | {"address": town.by("bert").address.removeprefix("0x")}
    keystore.write_text(json.dumps(document))
    found = operate("stake", anna, 5, "--dry-run")

    assert (found.code, f"this key is of {town.by('bert').address}" in found.err) == (2, True)


def test_command__with_a_keystore__signs_and_tells_neither_key_nor_password(town, operate, anna, keystore, monkeypatch):
    monkeypatch.setenv(OWN.password, "open sesame")
    before = town.registry.node(anna).stake
    found = operate("stake", anna, 5, "--yes")

    assert found.code == 0
    assert town.registry.node(anna).stake == before + 5
    key = bytes(person("anna").key).hex()
    assert all(secret not in found.out + found.err for secret in (key, "open sesame"))
