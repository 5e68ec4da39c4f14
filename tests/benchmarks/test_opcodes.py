"""The costs of a trace by kind."""

from benchmarks import opcodes


def step(op, gas, cost, depth=1):
    return {"op": op, "gas": gas, "gasCost": cost, "depth": depth}


def nothing_but(**costs):
    return (
        dict.fromkeys(opcodes.KINDS, 0) | {"transaction": 21_000} | {k.replace("_", " "): v for k, v in costs.items()}
    )


def test_by_kind__of_storage_steps__tells_new_words_from_changed_ones():
    steps = [
        step("SLOAD", 90_000, 2_100),
        step("SSTORE", 87_900, 20_000),
        step("SSTORE", 67_900, 2_900),
        step("STOP", 65_000, 0),
    ]
    costs = opcodes.by_kind(steps, b"", 46_000)
    assert costs == nothing_but(storage_reads=2_100, new_storage=20_000, changed_storage=2_900)


def test_by_kind__of_a_call__leaves_the_callee_its_own_costs():
    # The call forwards 50,000 and costs 2,600 itself; the callee reads a word and returns for 3.
    steps = [
        step("STATICCALL", 80_000, 52_600),
        step("SLOAD", 50_000, 2_100, depth=2),
        step("RETURN", 47_900, 3, depth=2),
        step("POP", 75_297, 2),
        step("STOP", 75_295, 0),
    ]
    costs = opcodes.by_kind(steps, b"", 25_705)
    assert costs == nothing_but(calls=2_600, storage_reads=2_100, code=5)


def test_by_kind__of_nested_calls__charges_each_once():
    steps = [
        step("CALL", 80_000, 62_600),
        step("CALL", 60_000, 42_600, depth=2),
        step("SLOAD", 40_000, 2_100, depth=3),
        step("STOP", 37_900, 0, depth=3),
        step("STOP", 55_300, 0, depth=2),
        step("STOP", 72_700, 0),
    ]
    assert opcodes.by_kind(steps, b"", 28_300) == nothing_but(calls=5_200, storage_reads=2_100)


def test_by_kind__of_a_precompile__is_the_cost_of_the_call():
    steps = [step("STATICCALL", 80_000, 3_100), step("STOP", 76_900, 0)]
    assert opcodes.by_kind(steps, b"", 24_100) == nothing_but(calls=3_100)


def test_by_kind__of_calldata__counts_zero_bytes_for_less():
    assert opcodes.by_kind([step("STOP", 10, 0)], b"\0\0\1", 21_024) == nothing_but(calldata=24)


def test_by_kind__with_a_refund__shows_what_came_back():
    steps = [
        step("SSTORE", 90_000, 5_000),
        step("LOG1", 85_000, 750),
        step("KECCAK256", 84_250, 36),
        step("STOP", 0, 0),
    ]
    steps[-1]["gas"] = 84_214
    costs = opcodes.by_kind(steps, b"", 21_986)
    assert costs == nothing_but(changed_storage=5_000, logs=750, hashing=36, refund=-4_800)
