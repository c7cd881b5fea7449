# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""For all Python tests: one thread for PyTorch and NumPy, in processes that tests start too, what is made once for all
workers, and a fresh seed, printed with every failure.

References are small and as many tests run at once as there are cores: with as many threads each, they wait for one
another, spinning, which takes four times the processor's time. Set before either is imported.

The compiler verifies its IR after each stage (WEFT_VERIFY): what an op does not allow is no program, though it may run.
Random programs, lit tests and `make test-full` verify after each pass.
"""

import fcntl
import os
import secrets
import shutil

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("WEFT_VERIFY", "stages")


@pytest.fixture
def seed(request):
    """A fresh seed for this test; WEFT_TEST_SEED repeats one. pytest shows it with a failure."""
    value = int(os.environ.get("WEFT_TEST_SEED", secrets.randbits(32)))
    print(f"seed {value} (repeat with WEFT_TEST_SEED={value})")
    return value


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """once(name, make): a folder of this run, filled by ``make(folder)`` in the worker that asks first, for all."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def folder(name, make):
        place, made = base / "once" / name, base / "once" / f"{name}.made"
        place.parent.mkdir(exist_ok=True)
        with made.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                shutil.rmtree(place, ignore_errors=True)  # what one that failed left
                place.mkdir()
                make(place)
                made.touch()
        return place

    return folder
