import shutil

import pytest

from counterfoil.receipts import canonical, digest, digest_of
from tests.support.receipts import example


@pytest.fixture
def decision(run):
    return run("session", 1, "--json").json["session"]["decision"]


def test_receipt_show__by_digest_or_file__prints_it_in_full(busy, run, decision):
    by_digest = run("receipt", "show", decision)
    by_file = run("receipt", "show", busy.home / "receipts" / f"{decision[2:]}.json")

    assert by_digest.code == 0
    assert by_digest.out == by_file.out
    for words in (decision, "data:crypto-price by LOTTERY, cap none", "attempt 0: service ", "It does not prove that"):
        assert words in by_digest.out
    assert all(len(line) <= 100 for line in by_digest.out.splitlines())
    assert run("receipt", "show", decision, "--json").json["receipt"]["kind"] == "session"


def test_receipt_show__of_skipped_and_relaxed_ones__says_so(busy, run):
    skipped = run("session", busy.sessions["next"], "--json").json["session"]["decision"]
    relaxed = run("session", busy.sessions["relaxed"], "--json").json["session"]["decision"]

    assert "no answer in 2 s" in run("receipt", "show", skipped).out
    assert "nobody was dropped" in run("receipt", "show", relaxed).out


def test_receipt_verify__of_our_own__is_valid(run, decision):
    found = run("receipt", "verify", decision)

    assert (found.code, found.err) == (0, "")
    assert found.out.startswith(f"valid: {decision} replays from its own inputs\n")
    assert run("receipt", "verify", decision, "--digest", decision, "--json").json == {
        "digest": decision,
        "valid": True,
        "deployment_checked": True,
    }


def test_receipt_verify__with_another_digest__exits_2(run, decision):
    found = run("receipt", "verify", decision, "--digest", "0x" + "11" * 32)

    assert (found.code, found.out) == (2, "")
    assert "the receipt was changed, cut, or is another's" in found.err


def test_receipt_verify__of_a_foreign_receipt__exits_2_and_names_the_contract(run, tmp_path):
    (tmp_path / "foreign.json").write_bytes(canonical(example()))
    found = run("receipt", "verify", tmp_path / "foreign.json")

    assert (found.code, found.out) == (2, "")
    assert "The receipt names 0x1a1a" in found.err
    assert "name the receipt's deployment with --deployment" in found.err


def test_receipt_verify__of_another_chain__exits_2(run, tmp_path):
    (tmp_path / "foreign.json").write_bytes(canonical(example(chain_id=1)))

    assert (
        "The receipt is of chain 1, the deployment file of chain 31337"
        in run("receipt", "verify", tmp_path / "foreign.json").err
    )


def test_receipt_verify__without_a_deployment__says_what_it_did_not_compare(run, tmp_path):
    (tmp_path / "foreign.json").write_bytes(canonical(example()))
    found = run("receipt", "verify", tmp_path / "foreign.json", home=tmp_path / "none")

    assert found.code == 0
    assert "its contracts were not compared: there is no deployment file" in found.out
    assert digest(example()) in found.out


@pytest.mark.parametrize("cut", [0, 10, -1])
def test_receipt_verify__of_a_truncated_file__exits_2_with_a_sentence(busy, run, tmp_path, decision, cut):
    data = (busy.home / "receipts" / f"{decision[2:]}.json").read_bytes()[:cut]
    (tmp_path / "cut.json").write_bytes(data)
    found = run("receipt", "verify", tmp_path / "cut.json")

    assert (found.code, found.out) == (2, "")
    assert "is no valid receipt: the receipt is cut or not JSON" in found.err
    assert "ask the session's client for it again" in found.err


def test_receipt_verify__of_a_file_under_anothers_digest__exits_2(busy, run, tmp_path, decision):
    home = shutil.copytree(busy.home, tmp_path / "home")
    path = home / "receipts" / f"{decision[2:]}.json"
    path.write_bytes(canonical(example()))

    assert (
        f"these bytes have the digest {digest_of(path.read_bytes())}" in run("receipt", "verify", path, home=home).err
    )
    assert "is not what its name says" in run("receipt", "verify", decision, home=home).err


@pytest.mark.parametrize("name", ["none.json", "0x" + "12" * 32, "0x12", "."])
def test_receipt_show__of_nothing__exits_2_with_a_sentence(run, name):
    found = run("receipt", "show", name)

    assert (found.code, found.out) == (2, "")
    assert len(found.err.splitlines()) == 1


def test_receipt__named_by_a_digest_without_0x__is_the_same(busy, run, decision):
    assert run("receipt", "show", decision[2:].upper()).out == run("receipt", "show", decision).out
    assert run("receipt", "verify", decision[2:], "--digest", decision[2:]).code == 0
    assert run("audit", "session", busy.sessions["first"][2:], "--by", "state").code == 0
    block = busy.world.chain.block(5).hash
    assert run("services", "--at", block[2:]).out == run("services", "--at", block).out
