"""`python -m tests.sim`: every fault against the real index, on both stores; exit code 1 if one is not right."""

import json
import os
import signal
import sys

import click

from tests.sim.jobs import plan, run_all
from tests.sim.report import document, tables

STORES = ("sqlite", "postgresql")


@click.command()
@click.option("--seeds", default=3, show_default=True, help="How many seeds each fault is played with.")
@click.option("--seed", default=1, show_default=True, help="The first of them.")
@click.option("--kills", default=500, show_default=True, help="How many processes are killed on each store.")
@click.option("--lives", default=200, show_default=True, help="How often agents, nodes and both are killed in runs.")
@click.option("--walks", default=6, show_default=True, help="How many walks over sequences are taken on each store.")
@click.option("--steps", default=60, show_default=True, help="How long a walk is.")
@click.option("--store", multiple=True, type=click.Choice(STORES), default=STORES, help="On this store only.")
@click.option(
    "--match", default="", help="Only what has this text in its name ('kill -9', 'agent killed' and 'walk' are names)."
)
@click.option("--workers", default=os.cpu_count() or 1, show_default=True, help="How many processes play at once.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    seeds: int, seed: int, kills: int, lives: int, walks: int, steps: int, store: tuple, match: str, workers: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Play every fault, kill processes, walk over sequences, and print what came out."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # what was started ends with it
    jobs = plan(store, range(seed, seed + seeds), kills, walks, steps, match, lives)
    done = []
    for one in run_all(jobs, workers):
        done.append(one)
        mark = " NOT AS IT HAS TO BE" if one.wrong else ""
        where = f"{one.job.store}, verify={one.job.verify}, seed {one.job.seed}"
        click.echo(f"{len(done)} of {len(jobs)}: {one.job.name} ({where}) {one.seconds:.1f} s{mark}", err=True)
    click.echo(json.dumps(document(done), indent=1) if as_json else tables(done))
    sys.exit(any(one.wrong for one in done))


if __name__ == "__main__":
    main()
