"""`python -m tests.mutation`: a seeded sample of 200 mutants; --all for every one, --report for what is known."""

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import click

from tests.mutation.equivalents import listed
from tests.mutation.plan import CONTRACTS, ROOT, TESTS, sources
from tests.mutation.results import Results
from tests.mutation.run import Baseline, Case, Runner, cases, report, sampled
from tests.mutation.tree import private_tree

CACHE = ROOT / ".cache" / "mutation"
say = partial(print, flush=True)


def _chosen(contracts: Path, file: tuple[str, ...], everything: bool, sample: int, seed: int) -> list[Case]:
    among = [case for case in cases(sources(contracts)) if not file or case.mutant.file in file]
    return among if everything else sampled(among, sample, seed)


def _in_background() -> None:
    """Start the same run in a session of its own."""
    CACHE.mkdir(parents=True, exist_ok=True)
    log = CACHE / "run.log"
    arguments = [argument for argument in sys.argv[1:] if argument != "--background"]
    with log.open("a") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.mutation", *arguments],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    say(f"process {process.pid} runs on and writes {log.relative_to(ROOT)}; end it with: kill {process.pid}")


@click.command()
@click.option("--sample", default=200, show_default=True, help="How many mutants to try.")
@click.option("--seed", default=1, show_default=True, help="Which ones.")
@click.option("--all", "everything", is_flag=True, help="Try every mutant: hours.")
@click.option("--file", multiple=True, type=click.Choice(list(TESTS)), help="Of this file only; may be repeated.")
@click.option("--again", is_flag=True, help="Try survivors again, after the tests changed.")
@click.option("--report", "only_report", is_flag=True, help="Say what is known of the chosen ones, and run nothing.")
@click.option("--background", is_flag=True, help="Run in the background, with the output in .cache/mutation/run.log.")
def main(
    sample: int, seed: int, everything: bool, file: tuple[str, ...], again: bool, only_report: bool, background: bool
) -> None:
    """Mutate the contracts and see whether their tests notice. A run goes on where an earlier one stopped."""
    if background:
        _in_background()
        return
    # Ending a run ends its tests and removes its copy.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped; the same command goes on from here"))
    results = Results(CACHE / "results.jsonl")
    if only_report:
        chosen = _chosen(CONTRACTS, file, everything, sample, seed)
    else:
        with private_tree() as tree:
            # The copy does not change while it is tested, whatever happens to the checkout.
            chosen = _chosen(tree.contracts, file, everything, sample, seed)
            say(f"{len(chosen)} mutants chosen; {len(results.among(case.key for case in chosen))} of them known")
            baseline = Baseline(tree, CACHE / "baseline.json", say)
            Runner(tree, baseline, results, listed()).run(chosen, again=again, say=say)
    known = results.among(case.key for case in chosen)
    say("\n".join(report(sorted({case.mutant.file for case in chosen}), known)))
    if len(known) < len(chosen):
        say(f"{len(chosen) - len(known)} of {len(chosen)} not tried yet")


if __name__ == "__main__":
    main()
