"""The process that reads: what it gives is what this one would have read, and it never outlives its use."""

import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from indexer import reading
from indexer.errors import BehindError, RangeTooLargeError, UnavailableError
from indexer.notices import Retried, Stepped
from indexer.reading import Reader, Task
from indexer.rpc import HttpRpc
from indexer.source import Source
from indexer.store.writer import open_writer
from indexer.sync import SyncOptions, follow, run_once
from tests.indexer.model import Node
from tests.indexer.served import refuse, served
from tests.indexer.traffic import assert_same_as_clean, busy_chain, grow

APART = SyncOptions(first_range=7, max_range=16, first_pause=0, longest_pause=0, poll_seconds=0.01, reader_blocks=1)
PATIENCE = 20
"""Seconds after which a test fails that waits for a process."""


@pytest.fixture
def chain():
    return busy_chain()


@pytest.fixture
def writer(sqlite_database, chain):
    with open_writer(sqlite_database, chain.deployment()) as opened:
        yield opened


@pytest.fixture
def url(node):
    with served(node) as address:
        yield address


@pytest.fixture
def rpc(url):
    with HttpRpc(url, seconds=PATIENCE) as client:
        yield client


@pytest.fixture
def task(url, chain):
    return Task(url, PATIENCE, 2**20, chain.deployment(), "bloom")


@pytest.fixture
def reader(task):
    made = Reader(task)
    yield made
    made.close()


@pytest.fixture
def children(monkeypatch):
    """The processes that are started, in their order."""
    started = []

    class Popen(subprocess.Popen):
        def __init__(self, *args, **more):
            super().__init__(*args, **more)
            started.append(self)

    monkeypatch.setattr(reading, "Popen", Popen)
    return started


@pytest.fixture
def read_here(monkeypatch):
    """The ranges over HTTP that this process reads itself, by their first block."""
    ranges = []
    fetch = Source.fetch

    def noted(self, first, last):
        if isinstance(self._rpc, HttpRpc):
            ranges.append(first)
        return fetch(self, first, last)

    monkeypatch.setattr(Source, "fetch", noted)
    return ranges


@pytest.fixture(autouse=True)
def _ready(monkeypatch):
    """Have a reader that is started be waited for: how soon it is ready is the machine's business."""
    start = Reader.start

    def start_and_wait(self):
        start(self)
        wait_until(lambda: self.is_ready or not self.is_usable)

    monkeypatch.setattr(Reader, "start", start_and_wait)


class Hold:
    """A fault: requests that fit wait until they may go on."""

    def __init__(self, fits=lambda _: True):
        self.fits = fits
        self.asked, self.go_on = threading.Event(), threading.Event()

    def __call__(self, answer, params):
        if self.fits(params):
            self.asked.set()
            self.go_on.wait(PATIENCE)
        return answer


def has_ended(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# --- what it reads


def test_run_once__with_a_reader__writes_what_one_process_would(writer, rpc, chain, tmp_path, children, read_here):
    result = run_once(writer, rpc, options=APART)
    assert (result.block, result.logs) == (chain.head, sum(len(block["logs"]) for block in chain.blocks))
    assert_same_as_clean(writer, chain, tmp_path)
    assert (len(children), read_here) == (1, [1])
    assert has_ended(children[0].pid)


@pytest.mark.parametrize("blocks", [0, 44])
def test_run_once__with_too_few_blocks_for_a_reader__starts_none(writer, rpc, chain, children, blocks):
    assert run_once(writer, rpc, options=SyncOptions(reader_blocks=blocks)).block == chain.head
    assert children == []


def test_run_once__with_a_reader_in_full_mode__counts_what_verifying_took(writer, rpc, chain, tmp_path, read_here):
    result = run_once(writer, rpc, options=SyncOptions(first_range=16, verify="full", reader_blocks=1))
    assert read_here == [1]
    with open_writer(tmp_path / "here.sqlite", chain.deployment()) as other:
        here = run_once(other, rpc, options=SyncOptions(first_range=16, verify="full", reader_blocks=0))
    assert (result.verified_blocks, result.verification_calls) == (here.verified_blocks, here.verification_calls)
    assert result.verified_blocks == 34  # those with logs
    assert result.verification_bytes == pytest.approx(here.verification_bytes, rel=0.001)  # the calls have other ids
    assert result.verification_seconds > 0


def test_run_once__with_a_reader_and_no_receipts__says_once_what_cannot_be_verified(writer, rpc, node, chain):
    for method in ("eth_getBlockReceipts", "eth_getTransactionReceipt"):
        node.faults[method] = refuse("the method does not exist")
    result = run_once(writer, rpc, options=APART)
    assert result.block == chain.head
    assert [notice for notice in result.notices if "gives no receipts" in notice] == list(result.notices)
    assert len(result.notices) == 1


def test_run_once__with_a_reader_and_a_hole__sets_the_node_aside_by_name(writer, rpc, node, chain, tmp_path):
    node.faults["eth_getLogs"] = lambda answer, params: answer if "blockHash" in params[0] else answer[:-1]
    result = run_once(writer, rpc, options=APART)
    assert result.notices[0].startswith(f"{rpc.where} was set aside: The node left out logs of block ")
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_reader_and_a_reorg__ends_on_the_new_branch(writer, rpc, chain, tmp_path):
    run_once(writer, rpc, options=APART)
    chain.rewind(11)
    grow(chain, 40, start=500)
    assert run_once(writer, rpc, options=APART).reorgs == 1
    assert_same_as_clean(writer, chain, tmp_path)


# --- what it cannot read


def test_read__of_a_range_that_is_refused__raises_what_reading_here_would(reader, node):
    node.faults["eth_getLogs"] = refuse("query exceeds max block range 3")
    with pytest.raises(RangeTooLargeError, match="exceeds max block range 3") as caught:
        reader.read(1, 9, 42).range()
    assert caught.value.blocks == 3


def test_read__of_a_block_that_is_not_there_yet__knows_the_newest_one(reader):
    with pytest.raises(BehindError):
        reader.read(40, 60, 42).range()
    assert [log[0] for log in reader.read(3, 3, 42).logs] == 6 * [3]


def test_run_once__with_a_reader_that_is_killed__goes_on_in_this_process(
    writer, rpc, node, chain, tmp_path, children, read_here
):
    def kill(answer, params):
        if len(node.asked("eth_getLogs")) == 3:
            children[0].kill()
            children[0].wait()
        return answer

    node.faults["eth_getLogs"] = kill
    notices = []
    run_once(writer, rpc, options=APART, observer=notices.append)
    failures = [str(notice.error) for notice in notices if isinstance(notice, Retried)]
    assert len(failures) == 1
    assert failures[0].startswith("The process that reads the chain ended; this one reads from now on.")
    assert (len(children), read_here[:2]) == (1, [1, 19])
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_reader_that_cannot_be_started__goes_on_in_this_process(
    writer, rpc, chain, tmp_path, monkeypatch
):
    monkeypatch.setattr(reading, "_COMMAND", [str(tmp_path / "nothing")])
    notices = []
    run_once(writer, rpc, options=APART, observer=notices.append)
    (failure,) = [str(notice.error) for notice in notices if isinstance(notice, Retried)]
    assert failure.startswith("No process to read the chain can be started (")
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_reader_that_ends_at_once__goes_on_in_this_process(writer, rpc, chain, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_COMMAND", [sys.executable, "-c", ""])
    run_once(writer, rpc, options=APART)
    assert_same_as_clean(writer, chain, tmp_path)


@pytest.mark.parametrize("text", ["cfg loaded\nfrom site\n", "hello", "\x80\x05."])
def test_run_once__with_a_reader_that_says_something_else__goes_on_in_this_process(
    writer, rpc, chain, tmp_path, monkeypatch, text
):
    monkeypatch.setattr(reading, "_COMMAND", [sys.executable, "-c", f"print({text!r})"])
    run_once(writer, rpc, options=APART)
    assert_same_as_clean(writer, chain, tmp_path)


def test_run_once__with_a_reader_of_another_version__goes_on_in_this_process(
    writer, rpc, chain, tmp_path, monkeypatch, children, read_here
):
    monkeypatch.setattr(reading, "_FORMS", "those of another version")
    run_once(writer, rpc, options=APART)
    assert (len(children), read_here[:2]) == (1, [1, 8])
    assert_same_as_clean(writer, chain, tmp_path)


# --- how it ends


def test_follow__from_a_second_node_where_the_first_one_fails__keeps_no_reader_of_either(writer, rpc, chain, children):
    stop, broken, ended = threading.Event(), Node(chain), []
    broken.faults["eth_getLogs"] = refuse("internal error")

    def observe(notice):
        if isinstance(notice, Stepped) and notice.outcome == "current":
            ended[:] = [has_ended(child.pid) for child in children]
            stop.set()

    with served(broken) as url, HttpRpc(url, seconds=PATIENCE) as first:
        follow(writer, [first, rpc], stop=stop, options=replace(APART, poll_seconds=30), observer=observe)
    assert ended == [True, False]
    assert all(has_ended(child.pid) for child in children)


def test_follow__when_it_has_caught_up__keeps_no_reader(writer, rpc, chain, children):
    stop, rests = threading.Event(), []

    def observe(notice):
        if isinstance(notice, Stepped) and notice.outcome == "current":
            rests.append([child.poll() for child in children])
            if len(rests) == 2:
                stop.set()

    assert follow(writer, rpc, stop=stop, options=APART, observer=observe).block == chain.head
    assert rests == [[None], [-9]]


def test_follow__stopped_while_the_reader_waits__ends_at_once(writer, rpc, node, children):
    stop, errors = threading.Event(), []
    hold = node.faults["eth_getLogs"] = Hold(lambda params: params[0]["fromBlock"] != hex(1))

    def run():
        try:
            follow(writer, rpc, stop=stop, options=APART)
        except Exception as error:  # noqa: BLE001 - whatever it is, there should be none
            errors.append(error)

    running = threading.Thread(target=run)
    running.start()
    try:
        assert hold.asked.wait(PATIENCE)
        stop.set()
        running.join(PATIENCE / 2)
        assert (running.is_alive(), errors) == (False, [])
        assert has_ended(children[0].pid)
    finally:
        hold.go_on.set()
        running.join()


def test_stop__while_a_range_is_read__gives_it_up_and_lets_the_next_one_be_read(reader, node, children):
    failures = []
    hold = node.faults["eth_getLogs"] = Hold()

    def read():
        try:
            reader.read(1, 9, 42)
        except UnavailableError as error:
            failures.append(str(error))

    given_up = threading.Thread(target=read)
    given_up.start()
    assert hold.asked.wait(PATIENCE)
    reader.stop()
    given_up.join(PATIENCE)
    assert len(failures) == 1
    hold.go_on.set()
    assert reader.is_usable
    assert reader.read(1, 9, 42).range().headers[-1].number == 9
    assert len(children) == 2


def test_read__after_close__starts_nothing(reader, children):
    reader.close()
    with pytest.raises(UnavailableError, match="run stops here"):
        reader.read(1, 9, 42)
    assert children == []


def test_read__of_a_url_with_a_key__shows_it_in_no_argument_and_no_variable(reader, task, children):
    reader.read(1, 9, 42)
    of_child = Path(f"/proc/{children[0].pid}")
    for name in ("cmdline", "environ"):
        assert b"secret-key" not in (of_child / name).read_bytes()
    assert "secret-key" not in repr(task)


_PARENT = """
import sys
from indexer.reading import Reader, _receive
reader = Reader(_receive(sys.stdin.buffer))
reader.start()
print(reader._child.pid, flush=True)
reader.read(1, int(sys.argv[1]), 942)
print("read", flush=True)
sys.stdin.buffer.read()
"""


@pytest.mark.parametrize("blocks", [9, 900])
def test_read__by_a_process_that_is_killed__leaves_no_child(task, node, chain, blocks):
    """Killed while the child is idle, and in the middle of a range of 9 batches: it asks for no further one."""
    for _ in range(900):
        chain.append()
    hold = node.faults["eth_getBlockByNumber"] = Hold(lambda params: params[0] == hex(150))
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(blocks)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with parent:
        reading._send(parent.stdin, task)
        child = int(parent.stdout.readline())
        assert parent.stdout.readline() == b"read\n" if blocks == 9 else hold.asked.wait(PATIENCE)
        assert not has_ended(child)
        parent.kill()
        parent.wait()
        hold.go_on.set()
        wait_until(lambda: has_ended(child))
    assert all(int(params[0], 16) <= 200 for params in node.asked("eth_getBlockByNumber"))
