# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A tuning run over a local Dask cluster whose workers are killed while they work, beside one in processes here.

    python benchmarks/tuning_at_scale.py [--limit 500] [--workers 4] [--every 20]

Causal attention of two heads of 64 over 256 tokens, forward and backward, ``--limit`` candidates a kernel at most, each
compiled, checked and counted by the simulator. The cluster's run begins with nothing known; every ``--every`` seconds a
worker of it is killed. Then the run here takes its candidates from the records that are there: its choice is to be the
same, and it is to measure nothing. Last, how the time of ``--sample`` candidates falls with processes, a core for each.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import signal
import tempfile
import threading
import time

import distributed
import weft

SIZES = {"B": 1, "H": 2, "N": 256}


@weft.program
def causal(q: "fp16[B,H,N,64]:16", k: "fp16[B,H,N,64]:16", v: "fp16[B,H,N,64]:16"):  # type: ignore  # noqa
    return weft.softmax(q, k, weft.causal()) @ v


def killed(cluster: distributed.LocalCluster, every: float, done: threading.Event) -> list[int]:
    """Kill a worker's process again and again until ``done``; the list of their numbers grows meanwhile."""
    found: list[int] = []

    def kill() -> None:
        while not done.wait(every):
            alive = [nanny.pid for nanny in cluster.workers.values() if nanny.pid not in (None, *found)]
            if alive:
                found.append(alive[0])
                os.kill(alive[0], signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    return found


def fresh(folder: str, name: str) -> None:
    """Nothing is known from here on but what records of this name say."""
    os.environ["WEFT_CACHE_DIR"] = str(pathlib.Path(folder) / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=500, help="candidates a kernel at most")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--every", type=float, default=20, help="seconds between two kills")
    parser.add_argument("--sample", type=int, default=40, help="candidates of the runs whose times are compared")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        records = str(pathlib.Path(folder) / "records.jsonl")
        fresh(folder, "cluster")
        done = threading.Event()
        with (
            distributed.LocalCluster(options.workers, threads_per_worker=1, dashboard_address=None) as cluster,
            distributed.Client(cluster) as client,
        ):
            dead = killed(cluster, options.every, done)
            found = weft.tuning.tune(
                causal, sizes=SIZES, limit=options.limit, executor=client.get_executor(), folder=folder, records=records
            )
            done.set()
        tried = [row for row in found.rows if row.place != "together"]
        lost = [row for row in tried if row.status == "refused"]
        print(
            f"{options.workers} workers, {len(dead)} killed: {len(tried)} candidates, {found.measured} measured in "
            f"{found.elapsed:.0f} s, {len(lost)} refused; chosen {dict(found.schedules)}",
            flush=True,
        )
        for row in lost[:5]:
            print(f"  {row.place} {row.schedule}: {row.reason}")
        fresh(folder, "here")
        again = weft.tuning.tune(causal, sizes=SIZES, limit=options.limit, records=records)
        print(f"here, from its records: {again.measured} measured; chosen {dict(again.schedules)}", flush=True)
        same = again.schedules == found.schedules
        print("the same choice" if same else "ANOTHER CHOICE")
        times = {}
        cores = os.sched_getaffinity(0)
        for jobs in (1, len(cores)):
            fresh(folder, f"jobs {jobs}")
            os.sched_setaffinity(0, sorted(cores)[:jobs])  # one process would simulate with all of them
            started = time.perf_counter()
            weft.tuning.tune(causal, sizes=SIZES, limit=options.sample, jobs=jobs, backward=False)
            times[jobs] = time.perf_counter() - started
        jobs = max(times)
        print(
            f"{options.sample} candidates: {times[1]:.1f} s in one process on one core, {times[jobs]:.1f} s in {jobs}: "
            f"{times[1] / times[jobs] / jobs:.2f} of linear"
        )
        if not same:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
