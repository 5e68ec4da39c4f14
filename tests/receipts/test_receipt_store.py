import pytest

from counterfoil.receipt_store import ReceiptStore, read_bounded
from counterfoil.receipts import MAX_BYTES, canonical, digest
from indexer.errors import UserError
from tests.support.receipts import example


def test_save__twice__leaves_one_file_under_its_digest(tmp_path):
    store = ReceiptStore(tmp_path / "home" / "receipts")
    receipt = example()

    assert store.save(receipt) == store.save(receipt) == digest(receipt)
    assert [path.name for path in store.folder.iterdir()] == [digest(receipt)[2:] + ".json"]
    assert store.read(digest(receipt)) == canonical(receipt)
    assert store.load(digest(receipt)) == receipt
    assert list(store.digests()) == [digest(receipt)]


def test_save__with_a_file_where_the_folder_should_be__says_so_and_leaves_it(tmp_path):
    (tmp_path / "receipts").write_text("mine")
    with pytest.raises(UserError, match=r"cannot be written to .* make it writable"):
        ReceiptStore(tmp_path / "receipts").save(example())

    assert (tmp_path / "receipts").read_text() == "mine"


def test_save__when_the_disk_refuses__leaves_nothing_behind(tmp_path, monkeypatch):
    def refuse(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(UserError, match="No space left on device"):
        ReceiptStore(tmp_path).save(example())

    assert list(tmp_path.iterdir()) == []


def test_load__with_no_such_receipt__says_where_to_get_it(tmp_path):
    store = ReceiptStore(tmp_path / "none")

    assert store.read("0x" + "00" * 32) is None
    with pytest.raises(UserError, match="ask the session's client for the file"):
        store.load("0x" + "00" * 32)
    assert list(store.digests()) == []
    assert not store.folder.exists()


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data.replace(b"7", b"8"), lambda _: b""])
def test_load__with_a_damaged_file__says_it_is_not_what_its_name_says(tmp_path, damage):
    store = ReceiptStore(tmp_path)
    own = store.save(example())
    store.path(own).write_bytes(damage(store.path(own).read_bytes()))

    with pytest.raises(UserError, match="is not what its name says: these bytes have the digest"):
        store.load(own)


@pytest.mark.parametrize("name", ["../../etc/passwd", "0x12", "0x" + "AB" * 32, "", "0x" + "00" * 33])
def test_path__with_no_digest__is_refused(tmp_path, name):
    with pytest.raises(UserError, match="is no digest"):
        ReceiptStore(tmp_path).path(name)


def test_read_bounded__with_a_file_too_large_or_missing__says_so(tmp_path):
    (tmp_path / "large").write_bytes(b"0" * (MAX_BYTES + 1))
    with pytest.raises(UserError, match="is larger than any receipt"):
        read_bounded(tmp_path / "large")
    with pytest.raises(UserError, match="cannot be read"):
        read_bounded(tmp_path / "missing")
