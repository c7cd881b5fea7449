# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Records of measurements: merging is a union, torn lines are survived, and what they say together is derived."""

from __future__ import annotations

import json
import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weft.tuning import records


def record(ptx="a", device="GPU", seconds=(1.0,), status="right", reason="", when="2026-01-01", **facts):
    return {
        "schema": records.SCHEMA, "weft": "0", "when": when, "ptx": ptx, "target": "sm_80", "device": device,
        "policy": "p", "functions": ["f"], "sizes": {"N": 64}, "program": "h", "schedules": {}, "status": status,
        "reason": reason, "seconds": list(seconds), "launches": [], **facts,
    }  # fmt: skip


some = st.builds(
    record,
    ptx=st.sampled_from("abc"),
    device=st.sampled_from(["GPU", "another"]),
    seconds=st.lists(st.floats(1e-6, 1), min_size=1, max_size=3),
    when=st.sampled_from(["2026-01-01", "2026-01-02"]),
)
lists = st.lists(some, max_size=6)


@given(lists, lists, lists)
@settings(max_examples=100, deadline=None)
def test_merging_is_a_union(a, b, c):
    whole = records.merge(a, b, c)
    assert records.merge(records.merge(a, b), c) == records.merge(a, records.merge(b, c)) == whole
    assert records.merge(b, c, a) == whole, "in any order"
    assert records.merge(whole, a, whole) == whole, "as often as one likes"
    assert {records.identity(each) for each in whole} == {records.identity(each) for each in [*a, *b, *c]}


@given(lists, st.data())
@settings(max_examples=100, deadline=None)
def test_torn_files_give_their_whole_lines(tmp_path_factory, written, data):
    path = tmp_path_factory.mktemp("records") / "r.jsonl"
    for each in written:
        records.append(path, [each])
    text = path.read_bytes() if written else b""
    cut = data.draw(st.integers(0, len(text)))
    path.write_bytes(text[:cut])
    lines = text[:cut].split(b"\n")
    whole = [json.loads(line) for line in lines[:-1]]
    read = records.read(path)
    last_is_whole = len(read.records) == len(whole) + 1  # cut right before its newline
    assert read.records[: len(whole)] == whole
    assert read.torn == (0 if last_is_whole or not lines[-1] else 1)
    more = record(ptx="later")
    records.append(path, [more])
    assert records.read(path).records == [*read.records, more], "a torn line is ended, and takes nothing with it"


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read(data):
    read = records.parse(data)
    assert read.records == []


@pytest.mark.parametrize(
    "line",
    [
        "[1]",
        "7",
        '{"schema": 1}',
        json.dumps(record(status="perfect")),
        json.dumps(record(seconds=[None])),
        json.dumps(record(anything=float("nan"))),
        json.dumps(record(launches=[{"counters": {"x": float("inf")}}])),
        json.dumps(record(reason="0"))[:-1] + ', "anything": -1e999}',
        json.dumps(record(when=3)),
        json.dumps(record(name=[])),
        json.dumps(record(functions=[[]])),
        json.dumps(record(launches=[7])),
        *(json.dumps(record(schedules={"0.forward": each})) for each in (3, "64x64x4x3", [], [64, 64, 0, 3], [1, 2.0])),
    ],
)
def test_what_is_no_record_is_passed_by(line):
    assert records.parse(f"{line}\n{json.dumps(record())}\n".encode()) == records.Read([record()], 1, 0)


def test_another_schema_is_counted():
    line = json.dumps({**record(), "schema": 99})
    assert records.parse(line.encode()) == records.Read([], 0, 1)


def test_derived():
    assert records.derived([]) is None
    found = records.derived([record(seconds=[1.0, 9.0, 2.0]), record(seconds=[4.0], when="2026-01-03")])
    assert found["seconds"] == [3.0], "the median of 2 and 4"
    wrong = record(status="refused", reason="wrong: out: an error of 3", seconds=[])
    assert records.derived([record(), wrong, record(when="2027")])["reason"] == wrong["reason"], "wrong once is wrong"
    died = record(status="refused", reason="the process died", seconds=[])
    assert records.derived([record(), died])["status"] == "right"


def test_pruning():
    mine = [record(when=f"2026-01-0{day}", seconds=[day / 1]) for day in range(1, 6)] + [record(device="another")]
    random.shuffle(mine)
    assert [each["when"] for each in records.prune(mine, latest=2) if each["device"] == "GPU"] == [
        "2026-01-04",
        "2026-01-05",
    ]
    assert records.prune(mine, lambda each: each["device"] == "another") == [record(device="another")]


def test_processes_and_threads_append_whole_lines(tmp_path):
    path = tmp_path / "r.jsonl"
    wide = "x" * 10_000  # more than a write that is taken at once

    def write(name):
        for number in range(20):
            records.append(path, [record(ptx=f"{name}.{number}", note=wide)])

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read = records.read(path)
    assert read.torn == 0 and {each["ptx"] for each in read.records} == {f"{n}.{i}" for n in "abcd" for i in range(20)}
