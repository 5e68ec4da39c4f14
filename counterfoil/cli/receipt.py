"""`counterfoil receipt`: look at a receipt, and check that it is whole and ours."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from counterfoil.cli.options import Common, answering, asking, example
from counterfoil.cli.output import amount, print_json, print_pairs, print_table, say
from counterfoil.receipt_store import read_bounded
from counterfoil.receipts import Receipt, ReceiptError, digest_of, parse, verify
from counterfoil.receipts.model import PROVES_NOT
from counterfoil.routing.lottery import promised_shares
from counterfoil.routing.reasons import percent, relaxed, wad
from indexer.deployment import Deployment, load_deployment
from indexer.errors import DeploymentError, UserError

_DIGEST: Final = re.compile(r"(0x)?([0-9a-fA-F]{64})")


@click.group()
def receipt() -> None:
    """Receipts: one decision with every input, every rejection as a sentence, and the choice."""


@receipt.command(epilog=example("counterfoil receipt show DIGEST", "counterfoil receipt show receipt.json"))
@click.argument("receipt")
@asking
def show(common: Common, receipt: str) -> None:
    """Print a receipt, given as a file or as a digest."""
    data, found = _load(common, receipt)
    if common.json:
        print_json({"digest": digest_of(data), "receipt": json.loads(data)})
        return
    print_receipt(found, digest_of(data))


@receipt.command(name="verify", epilog=example("counterfoil receipt verify DIGEST"))
@click.argument("receipt")
@click.option("--digest", "expected", help="The digest it must have, for example the session's `decision`.")
@asking
def verify_(common: Common, receipt: str, expected: str | None) -> None:
    """Check that a receipt is whole, follows from its own inputs, and is of this deployment.

    With --api the receipt comes from there; the deployment file that it is compared with is always your own.
    """
    data, found = _load(common, receipt)
    if expected is not None:
        verify(data, _digest(expected) or expected)
    deployment = _deployment(common)
    if deployment is not None:
        _check_ours(found, deployment)
    if common.json:
        print_json({"digest": digest_of(data), "valid": True, "deployment_checked": deployment is not None})
        return
    click.echo(f"valid: {digest_of(data)} replays from its own inputs")
    say(f"attempt {found.attempt}: {found.reason}")
    if deployment is None:
        click.echo("its contracts were not compared: there is no deployment file")


def print_candidates(found: Receipt) -> None:
    """Print a line for each candidate: the kept in the order drawn, then the dropped with the reason."""
    columns = (">place", ">service", ">price", ">stake", ">reputation", ">headroom", ">weight", ">chance", "dropped")
    print_table(columns, _candidate_rows(found))


def _candidate_rows(found: Receipt) -> Iterator[tuple[object, ...]]:
    ranking = found.ranking
    shares = promised_shares(ranking)
    inputs = {candidate.service_id: candidate for candidate in found.candidates}
    for place, service_id in enumerate(ranking.order):
        terms, one = ranking.terms[service_id], inputs[service_id]
        yield (
            place,
            service_id,
            amount(one.price),
            amount(one.stake),
            wad(terms.reputation),
            wad(terms.headroom),
            wad(terms.weight),
            percent(shares[service_id]),
            "",
        )
    for service_id, drop in sorted(ranking.dropped.items()):
        one = inputs[service_id]
        yield ("", service_id, amount(one.price), amount(one.stake), "", "", "", "0.0%", drop.sentence)


def _load(common: Common, name: str) -> tuple[bytes, Receipt]:
    path, digest = Path(name), _digest(name)
    if digest is not None:
        with answering(common) as ask:
            data = ask.receipt(digest)
        return data, parse(data)
    if not path.is_file():
        raise UserError(f"{name[:200]!r} is neither a file nor a digest of 64 hexadecimal digits: name a receipt.")
    data = read_bounded(path)
    try:
        named = _digest(path.stem)
        return data, parse(data) if named is None else verify(data, named)
    except ReceiptError as error:
        raise UserError(f"{path} is no valid receipt: {error}; ask the session's client for it again.") from error


def _digest(text: str) -> str | None:
    """A digest in its one form, given with 0x or without; None for what is no digest."""
    found = _DIGEST.fullmatch(text)
    return None if found is None else f"0x{found[2].lower()}"


def _deployment(common: Common) -> Deployment | None:
    try:
        path = common.settings.deployment_path()
    except DeploymentError:
        return None
    return load_deployment(path)


def _check_ours(found: Receipt, deployment: Deployment) -> None:
    if found.chain_id != deployment.chain_id:
        raise UserError(
            f"The receipt is of chain {found.chain_id}, the deployment file of chain {deployment.chain_id}: "
            "name the receipt's deployment with --deployment."
        )
    addresses = deployment.addresses()
    for name, address in found.contracts.items():
        if address != addresses[name]:
            raise UserError(
                f"The receipt names {address} as its {name}, the deployment file {addresses[name]}: "
                "name the receipt's deployment with --deployment."
            )


def print_receipt(found: Receipt, digest: str) -> None:
    """Print a receipt in full, with every candidate."""
    request, ranking = found.request, found.ranking
    cap = "none" if request.price_cap is None else amount(request.price_cap)
    print_pairs(
        [
            ("receipt", digest),
            ("chain", found.chain_id),
            ("snapshot", f"block {found.snapshot_block} ({found.snapshot_hash})"),
            ("client", f"{request.client}, draw {request.nonce}, seed {found.draw_seed}"),
            ("request", f"{request.category} by {request.policy.name}, cap {cap}"),
            ("previous", found.previous or "none"),
        ]
    )
    click.echo()
    print_candidates(found)
    click.echo()
    if ranking.relaxed and request.price_cap is not None:
        say(relaxed(request.price_cap, len(found.candidates)))
    for skip in found.skipped:
        say(f"skipped service {skip.service_id}: {skip.reason}")
    say(f"attempt {found.attempt}: {found.reason}")
    say(f"It does not prove {'; '.join(PROVES_NOT)}.")
