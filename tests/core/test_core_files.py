"""Files: there is the old content or the new, never half of it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from full_disks import small_files
from whyrank.core import (
    WhyrankError,
    cache_folder,
    check_writable,
    exclusive,
    replacing,
    temporary_room,
    write_text,
)


@pytest.fixture
def umask():
    """Set the umask for one test."""
    before = os.umask(0)
    os.umask(before)
    yield os.umask
    os.umask(before)


def test_a_failure_leaves_the_old_content_and_nothing_else(tmp_path):
    target = tmp_path / "result.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError, match="in the middle"), replacing(target) as beside:  # noqa: PT012
        beside.write_text("half of the n")
        raise RuntimeError("in the middle")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["result.txt"]


def test_an_interruption_leaves_nothing_where_nothing_was(tmp_path):
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "result.txt") as beside:  # noqa: PT012
        beside.write_text("half")
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="file modes are a matter of POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions_are_those_of_an_ordinary_new_file(tmp_path, umask, mask):
    umask(mask)
    write_text(tmp_path / "ours.txt", "x")
    (tmp_path / "ordinary.txt").write_text("x")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {0o666 & ~mask}
    assert umask(mask) == mask


def test_a_name_as_long_as_the_file_system_allows(tmp_path):
    target = tmp_path / ("n" * 250)
    write_text(target, "x")
    assert target.read_text() == "x"


def test_the_cache_folder_follows_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("WHYRANK_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("WHYRANK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "whyrank"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == Path.home() / ".cache" / "whyrank"


def test_links_are_followed_and_devices_left_alone(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(WhyrankError, match="is no ordinary file"):
            write_text(path, "x")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_place_is_tried_before_anything_is_written(tmp_path):
    (tmp_path / "file").write_text("x")
    check_writable(tmp_path / "file")
    check_writable(tmp_path / "new" / "folder" / "file.tsv")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    for wrong in (tmp_path, tmp_path / "file" / "below", "/proc/nothing.tsv"):
        with pytest.raises(WhyrankError, match=r"no ordinary file|cannot be written \("):
            check_writable(wrong)


def test_a_full_disk_is_one_line_with_the_name_that_was_given(tmp_path):
    path = tmp_path / "kept"
    path.write_text("old")
    with (
        pytest.raises(WhyrankError, match=r"kept: cannot be written \(File too large\); free the disk"),
        small_files(999),
    ):
        write_text(path, "new" * 1000)
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"kept": "old"}


@pytest.mark.parametrize(
    "error", [FileNotFoundError(2, "no such file", "input.txt"), ConnectionResetError(), OSError(5, "input", "a")]
)
def test_other_errors_in_the_block_stay_as_they_are(tmp_path, error):
    with pytest.raises(type(error)) as found, replacing(tmp_path / "kept"):
        raise error
    assert found.value is error


def test_a_temporary_file_without_room_is_one_line_with_its_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    said = (
        rf"^{tmp_path}: a temporary file cannot be written \(File too large\); free the disk, or .* TMPDIR, or less$"
    )
    with (
        tempfile.TemporaryFile(buffering=0) as file,
        pytest.raises(WhyrankError, match=said),
        small_files(0),
        temporary_room(", or less"),
    ):
        file.write(b"x")


HOLDS = """
import sys, time
from whyrank.core import replacing
with replacing(sys.argv[1]):
    print("writing", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    path = tmp_path / "file.txt"
    with subprocess.Popen([sys.executable, "-c", HOLDS, path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "writing\n"
        write_text(path, "old")
        assert len(list(tmp_path.glob(".file.txt.*.tmp"))) == 1
        process.kill()
    assert len(list(tmp_path.glob(".file.txt.*.tmp"))) == 1
    write_text(tmp_path / "file.txt.other", "of another file")
    assert len(list(tmp_path.glob(".file.txt.*.tmp"))) == 1
    write_text(path, "new")
    assert sorted(os.listdir(tmp_path)) == ["file.txt", "file.txt.other"]


HOLD = """
import sys, time
from whyrank.core import exclusive
with exclusive(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of a folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / "out" / ".lock"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_process_is_refused_at_once(tmp_path, holder):
    said = r"\.lock: another process is at work on the same output; wait"
    with pytest.raises(WhyrankError, match=said) as refused, exclusive(tmp_path / "out" / ".lock"):
        pass
    assert "\n" not in str(refused.value)
    assert (tmp_path / "out" / ".lock").exists()


def test_the_lock_of_a_killed_process_blocks_nothing(tmp_path, holder):
    holder.kill()
    holder.wait()
    assert (tmp_path / "out" / ".lock").exists()
    with exclusive(tmp_path / "out" / ".lock"):
        (tmp_path / "out" / "result").touch()
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["result"]


def test_a_lock_that_was_let_go_between_opening_and_locking_is_made_anew(tmp_path, monkeypatch):
    """The file that was opened is gone by then: another process would lock a new one beside it."""
    import fcntl

    lock, real, opened = tmp_path / "out.lock", fcntl.flock, []

    def late(handle, how):
        if not opened:
            lock.unlink()
        opened.append(handle)
        real(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with exclusive(lock):
        assert len(opened) == 2
        assert lock.exists()
    assert not lock.exists()


def test_nothing_is_left_of_a_lock(tmp_path):
    with pytest.raises(RuntimeError), exclusive(tmp_path / "a" / ".lock"):
        raise RuntimeError
    assert not any(tmp_path.iterdir())
