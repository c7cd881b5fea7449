# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The cache on disk is bounded; `weft cache`, `weft doctor` and `weft --version` say what is here."""

import json
import os
import subprocess
import sys

import pytest
import weft
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
    monkeypatch.setenv("WEFT_CACHE_BYTES", "20000")
    fill(4 * cache._PRUNE_EVERY)
    assert cache.usage().bytes <= 20000 + cache._PRUNE_EVERY * 1200
    cache.prune(cache.limit())
    assert 0 < cache.usage().bytes <= 20000


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
