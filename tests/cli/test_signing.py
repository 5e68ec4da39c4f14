"""Asking before something is sent, and telling what was sent when a later step fails."""

from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from counterfoil.chain.errors import NoAnswerError, RevertedError, UnconfirmedError
from counterfoil.chain.keys import OWN
from counterfoil.chain.sender import Sender
from counterfoil.cli import signing
from counterfoil.cli.main import main
from tests.support.chain import MIN_STAKE, person


@pytest.fixture(scope="module")
def anna(town):
    return town.registry.service(town.node("anna", MIN_STAKE * 2, 100)).node_id


@pytest.fixture
def asked(town, anna, monkeypatch):
    """Run `unstake` as on a terminal, where a person answers."""
    monkeypatch.setattr(signing, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    monkeypatch.setenv(OWN.key, "0x" + bytes(person("anna").key).hex())

    def command(answer):
        words = ["node", "unstake", str(anna), "7", "--home", str(town.home), "--rpc", town.url]
        return CliRunner(mix_stderr=False).invoke(main, words, input=answer)

    return command


def test_question__answered_with_no__sends_nothing(town, anna, asked):
    before = town.chain.head().number
    found = asked("n\n")

    assert (found.exit_code, found.stderr) == (2, "Nothing was sent.\n")
    assert town.chain.head().number == before
    assert found.stdout.splitlines() == [
        f"1. take 7 of the stake out of node {anna}",
        "It is released 100 s after it is mined, and can be slashed until then.",
        f"A stake of {MIN_STAKE * 2 - 7:,} pays for 3 sessions at a time.",
        f"Send this from {person('anna').address}? [y/N]: n",
    ]


def test_question__answered_with_yes__sends(town, anna, asked):
    before = town.registry.node(anna).unbonding
    found = asked("y\n")

    assert found.exit_code == 0
    assert town.registry.node(anna).unbonding == before + 7


@pytest.fixture
def failing(monkeypatch):
    """The second thing that is sent comes to this end."""

    def at_the_second(error):
        class Failing(Sender):
            count = 0

            def send(self, write):
                self.count += 1
                if self.count == 2:
                    raise error
                return super().send(write)

        monkeypatch.setattr(signing, "Sender", Failing)

    return at_the_second


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            RevertedError("NodeRegistry.add_stake", "token: balance too small"),
            "The chain refuses to stake 9 more on node NODE: token: balance too small. Send the account more of the",
        ),
        (
            UnconfirmedError("0x12", "was sent and is not mined after 60 s"),
            "Transaction 0x12 was sent and is not mined",
        ),
        (NoAnswerError("The RPC does not answer: start the chain."), "The RPC does not answer"),
    ],
    ids=["refused", "not mined", "no answer"],
)
@pytest.mark.parametrize("as_json", [True, False])
def test_second_step__that_fails__leaves_word_of_the_first(town, operate, anna, failing, error, sentence, as_json):
    town.by("anna").send(town.token.approve(town.registry.address, 0))
    failing(error)
    found = operate("stake", anna, 9, "--yes", *["--json"] * as_json, by="anna")
    done = f"done: let {town.registry.address} take 9 of the token {town.token.address} (block "

    assert found.code == 2
    assert (found.err if as_json else found.out).startswith(done)
    assert found.err.splitlines()[-1].startswith(sentence.replace("NODE", str(anna)))
    assert town.token.allowance(town.by("anna").address, town.registry.address) == 9
    (left,) = operate("stake", anna, 9, "--dry-run", "--json", by="anna").json["steps"]
    assert (left["sentence"], left["accepted"]) == (f"stake 9 more on node {anna}", True)
