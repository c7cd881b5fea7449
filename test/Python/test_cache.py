# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The cache on disk is bounded; `weft cache`, `weft doctor` and `weft --version` say what is here."""

import json
import os
import subprocess
import sys

import pytest
import weft
from weft.cli import driver
from weft.compiler import cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("WEFT_CACHE", raising=False)
    return tmp_path


def fill(count, letters=1000):
    names = [cache.key(["test", i]) for i in range(count)]
    for i, name in enumerate(names):
        cache.write(name, {"text": "x" * letters})
        path = cache.directory() / name[:2] / f"{name}.json"
        os.utime(path, (i, i))
    return names


def test_what_was_not_used_for_longest_goes_first(folder):
    names = fill(10)
    size = cache.usage().bytes // 10
    assert cache.read(names[0])  # used now
    assert cache.prune(5 * size) == 5
    assert [name for name in names if cache.read(name)] == [names[0], *names[6:]]
    assert cache.usage().entries == 5


def test_writing_keeps_the_limit(folder, monkeypatch):
    """After every write, whether entries are new, replaced, or were there before their sizes were counted."""
    fill(50)
    (folder / ".bytes").write_text("not a number, but longer than a number is written")
    monkeypatch.setenv("WEFT_CACHE_BYTES", "20000")
    for i in range(300):
        name = cache.key(["test", i // 2])
        cache.write(name, {"text": "x" * (200 + 37 * i % 1000)})
        assert cache.read(name)
        usage = cache.usage()
        assert usage.bytes <= 20000 and int((folder / ".bytes").read_text()[:32]) == usage.bytes
    assert usage.bytes > 10000
    cache.write(cache.key(["large"]), {"text": "x" * 20000})
    assert cache.read(cache.key(["large"])) is None and cache.usage() == usage


def test_an_entry_that_cannot_be_counted_is_not_kept(folder, monkeypatch):
    """Another process that holds the count, stopped perhaps, costs a moment and an entry."""
    monkeypatch.setattr(cache, "_LOCK_SECONDS", 0.05)
    (name,) = fill(1)
    with cache._locked(folder):
        cache.write(cache.key(["late"]), {})
        assert cache.prune(0) == 0
    assert cache.read(cache.key(["late"])) is None and cache.read(name)


def test_a_limit_that_is_no_number(monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_BYTES", "1G")
    with pytest.raises(weft.Error, match="expected WEFT_CACHE_BYTES to be a number of bytes, but got '1G'"):
        cache.limit()


def command(*words, **variables):
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, "-m", "weft.cli", *words], capture_output=True, text=True, env=environment, timeout=120
    )


def test_commands(folder):
    fill(3)
    assert json.loads(command("cache", "info", "--json").stdout)["entries"] == 3
    assert "3 entries" in command("cache", "info").stdout
    assert "deleted 3 entries" in command("cache", "clear").stdout
    assert cache.usage().entries == 0
    assert weft.__version__ in command("--version").stdout
    done = command("doctor", "--json", WEFT_DEVICE="simulator")
    found = {each["name"]: each for each in json.loads(done.stdout)}
    assert done.returncode == 0 and all(each["ok"] for each in found.values())
    assert found["runs on"]["found"].startswith("simulator: WEFT_DEVICE=simulator")
    broken = command("doctor", WEFT_NATIVE_DIR=str(folder))
    assert broken.returncode == 1 and "BAD" in broken.stdout and "build it with 'make'" in broken.stdout


def fake_driver(folder, version, code):
    """A libcuda that has a version and answers cuInit with a code."""
    source = (
        f"int cuInit(unsigned f) {{ return {code}; }}\nint cuDriverGetVersion(int *v) {{ *v = {version}; return 0; }}\n"
    )
    library = folder / f"libcuda{version}-{code}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=source, text=True, check=True)
    return str(library)


def test_what_the_doctor_says_of_the_driver(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_LIBCUDA", "/nonexistent")
    assert driver.driver().startswith("none (/nonexistent: ")
    monkeypatch.setenv("WEFT_LIBCUDA", fake_driver(tmp_path, 12080, 0))
    assert driver.driver().endswith(" of CUDA 12.8")
    monkeypatch.setenv("WEFT_LIBCUDA", fake_driver(tmp_path, 12000, 100))
    assert driver.driver().endswith("of CUDA 12.0, which finds no GPU (cuInit gives 100)")
    monkeypatch.setenv("WEFT_LIBCUDA", fake_driver(tmp_path, 11080, 0))
    with pytest.raises(weft.Error, match=r"expected a driver of CUDA 12\.0 \(R525\) or newer, but got one of 11\.8"):
        driver.driver()


def test_which_targets_a_gpu_runs():
    names = ["sm_80", "sm_90a", "sm_86", "sm_89", "sm_120"]
    assert driver.fitting(names, (9, 0)) == ["sm_80", "sm_90a", "sm_86", "sm_89"]
    assert driver.fitting(names, (12, 0)) == ["sm_80", "sm_86", "sm_89", "sm_120"]
    assert driver.fitting(names, (8, 0)) == ["sm_80"] and driver.fitting(names, (7, 5)) == []


def test_what_a_process_that_was_ended_left(folder):
    """Files beside entries, from writers that never came to rename them, go with time."""
    (name,) = fill(1)
    left = [folder / name[:2] / f".{name}.{number}.1.partial" for number in (1, 2)]
    for path in left:
        path.touch()
    os.utime(left[0], (0, 0))
    cache.prune(cache.limit())
    assert not left[0].exists() and left[1].exists() and cache.usage().entries == 1


def test_several_processes_share_a_folder(folder, monkeypatch):
    """While some write and some delete, what is read is whole, or nothing."""
    monkeypatch.setenv("WEFT_CACHE_BYTES", "20000")
    work = (
        "from weft.compiler import cache\n"
        "for i in range(400):\n"
        "    name = cache.key(['shared', i % 40])\n"
        "    found = cache.read(name)\n"
        "    assert found is None or found == {'text': 'y' * 1000 + str(i % 40)}, found\n"
        "    cache.write(name, {'text': 'y' * 1000 + str(i % 40)})\n"
        "    with cache._locked(cache.directory()):\n"
        "        assert cache.usage().bytes <= 20000\n"
    )
    several = [subprocess.Popen([sys.executable, "-c", work], stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for each in several:
        assert not each.communicate(timeout=120)[1] and each.returncode == 0
    cache.prune(cache.limit())
    assert cache.usage().bytes <= 20000
