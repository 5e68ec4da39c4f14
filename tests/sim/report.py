"""The tables of `make sim`."""

from collections import Counter

from tests.sim.cases import BY_NAME, CASES

COLUMNS = (("sqlite", "full"), ("sqlite", "bloom"), ("postgresql", "full"))
OUTCOMES = ("exact", "stopped", "wrong")


def tables(done) -> str:
    """Everything that was found, as text."""
    parts = [_faults(done), _kills(done), _lives(done), _walks(done), _sentences(done), _wrong(done)]
    return "\n\n".join(part for part in parts if part)


def document(done) -> list[dict]:
    """Everything that was found, for JSON."""
    return [
        {
            "fault": one.job.name, "store": one.job.store, "verify": one.job.verify, "seed": one.job.seed,
            "seconds": round(one.seconds, 2), "as_it_has_to_be": not one.wrong, **one.found,
        }
        for one in done
    ]  # fmt: skip


def _faults(done):
    runs = [one for one in done if one.job.what == "case"]
    if not runs:
        return ""
    played = {one.job.name for one in runs}
    rows = [["fault", "has to be", *(f"{store}, verify={verify}" for store, verify in COLUMNS)]]
    for case in CASES:
        if case.name in played:
            cells = [_cell([one for one in runs if _place(one) == (case.name, *column)]) for column in COLUMNS]
            rows.append([case.name, case.expects.value, *cells])
    return f"Faults\n{_table(rows)}\n{_notes(played)}".rstrip()


def _notes(played):
    known = [case for case in CASES if case.name in played and case.in_bloom]
    return "* known: bloom mode does not see it, verify=full does" if known else ""


def _place(one):
    return one.job.name, one.job.store, one.job.verify


def _cell(runs):
    counts = Counter(one.found["outcome"] for one in runs)
    words = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
    if any(one.wrong for one in runs):
        return f"{words} !"
    known = any(one.found["outcome"] != BY_NAME[one.job.name].expects for one in runs)
    return f"{words} *" if known else words


def _kills(done):
    runs = [one for one in done if one.job.what == "kills"]
    if not runs:
        return ""
    rows = [["store", "kills", "before the first block", "reorgs to follow", "complete runs", "wrong"]]
    for store in sorted({one.job.store for one in runs}):
        found = [one.found for one in runs if one.job.store == store]
        sums = [sum(one[name] for one in found) for name in ("killed", "empty", "reorgs", "finished")]
        rows.append([store, *map(str, sums), str(sum(len(one["wrong"]) for one in found))])
    return f"kill -9\n{_table(rows)}"


def _lives(done):
    runs = [one for one in done if one.job.what == "lives"]
    if not runs:
        return ""
    rows = [["fault", "runs", "outcome", "units lost"]]
    for fault in dict.fromkeys(one.job.name for one in runs):
        found = [one.found for one in runs if one.job.name == fault]
        sums = {name: sum(one[name] for one in found) for name in ("kills", "done", "failed", "lost")}
        begun = sums["done"] + sums["failed"]
        wrong = sum(len(one["wrong"]) for one in found)
        words = f"{sums['done']} done, {sums['failed']} failed and say why, {sums['kills'] - begun} not begun"
        rows.append([fault, str(sums["kills"]), words + (f", {wrong} wrong !" if wrong else ""), str(sums["lost"])])
    return f"Agents and nodes under kill -9\n{_table(rows)}"


def _walks(done):
    runs = [one for one in done if one.job.what == "walk"]
    if not runs:
        return ""
    rows = [["store", "walks", "steps", "quiet points", "wrong"]]
    for store in sorted({one.job.store for one in runs}):
        found = [one for one in runs if one.job.store == store]
        steps = sum(len(one.found["steps"]) for one in found)
        points = sum(one.found["quiet_points"] for one in found)
        rows.append([store, str(len(found)), str(steps), str(points), str(sum(one.wrong for one in found))])
    return f"Walks over sequences\n{_table(rows)}"


def _sentences(done):
    said = {one.job.name: one.found["why"] for one in done if one.found.get("outcome") == "stopped"}
    lines = [f"{name}\n    {said[name]}" for name in sorted(said)]
    return "The sentences it stopped with\n" + "\n".join(lines) if lines else ""


def _wrong(done):
    lines = [f"{_again(one.job)}\n    {_why(one)}" for one in done if one.wrong]
    return "Not as it has to be\n" + "\n".join(lines) if lines else ""


def _why(one):
    if one.job.what in ("kills", "lives"):
        return "; ".join(one.found["wrong"])
    if one.job.what == "walk":
        return f"{one.found['verdict']['why']} (after: {', '.join(one.found['steps'])})"
    return f"{one.found['outcome']}: {one.found['why']}"


def _again(job):
    if job.what == "lives":
        return f"python -m tests.sim --match {job.name!r} --seed {job.seed} --lives {job.count}"
    return f"python -m tests.sim --match {job.name!r} --store {job.store} --seed {job.seed} --seeds 1"


def _table(rows):
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])
