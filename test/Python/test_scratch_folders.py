# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Folders for a while: removed by who made them, or, where that was killed, by who makes the next one."""

import pathlib
import re
import signal
import subprocess
import sys

import pytest
from weft.folders import scratch_folder

ROOT = pathlib.Path(__file__).parents[2]
HELD = """
import sys
from weft.folders import scratch_folder

with scratch_folder("room-", sys.argv[1]) as folder:
    (folder / "file").write_text("held")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds a folder, and the folder."""
    with subprocess.Popen(
        [sys.executable, "-c", HELD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process, pathlib.Path(process.stdout.readline().strip())
        process.kill()


def test_is_removed_at_the_end(tmp_path):
    with pytest.raises(KeyError), scratch_folder("room-", tmp_path) as folder:
        (folder / "file").write_text("x")
        assert folder.parent == tmp_path and folder.name.startswith("room-")
        raise KeyError
    assert not any(tmp_path.iterdir())


def test_of_a_killed_process_is_removed_by_the_next(tmp_path, holder):
    process, folder = holder
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (folder / "file").read_text() == "held"
    with scratch_folder("other-", tmp_path):
        assert folder.exists()
    with scratch_folder("room-", tmp_path) as mine:
        assert list(tmp_path.iterdir()) == [mine]


def test_of_a_running_process_is_kept(tmp_path, holder):
    process, folder = holder
    (tmp_path / "room-file").write_text("no folder")
    (tmp_path / "room-link").symlink_to(folder)
    with scratch_folder("room-", tmp_path) as mine:
        with scratch_folder("room-", tmp_path) as another:
            assert another != mine and mine.exists()
        assert (folder / "file").read_text() == "held"
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([folder.name, "room-file", "room-link"])
    process.communicate("")
    assert not folder.exists()


@pytest.mark.parametrize("place", ["python/weft", "benchmarks", "tools"])
def test_nothing_else_makes_folders_that_stay(place):
    sources = [path for path in (ROOT / place).rglob("*.py") if path != ROOT / "python/weft/folders.py"]
    assert [path for path in sources if re.search(r"\bmkdtemp\b", path.read_text())] == []
