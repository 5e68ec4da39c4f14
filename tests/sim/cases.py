"""All cases."""

from tests.sim import answer_cases, chain_cases, process_cases

CASES = [*answer_cases.CASES, *chain_cases.CASES, *process_cases.CASES]
BY_NAME = {case.name: case for case in CASES}
