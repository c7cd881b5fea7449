# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Manifests and plans that were damaged, byte by byte and in their structure: a library opens and is as it was, or an
error says which file, where in it, and why. Never a crash, never an empty text.
"""

import copy
import hashlib
import json
import random
import re
import shutil

import numpy as np
import pytest
import weft
from program_samples import SCORES
from weft import runtime


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    from weft.cli.__main__ import main

    place = tmp_path_factory.mktemp("fuzz")
    (place / "scores.py").write_text(SCORES)
    assert main(["compile", str(place / "scores.py"), "-o", str(place / "libscores"), "--forward-only"]) == 0
    return place / "libscores"


def sealed(manifest):
    """The manifest's text, its digest right again: what a writer that is at fault would write."""
    rest = {key: value for key, value in manifest.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = "sha256:" + hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return json.dumps(rest | {"digest": digest}).encode()


def opened(path, content):
    """What becomes of a library with this manifest: it opens, and runs or says why not; or an error of words."""
    (path / "manifest.json").write_bytes(content)
    x = np.ones((1, 1, 16, 16), np.float16)
    try:
        found = weft.load(path)
        repr(found)
        for program in found.programs.values():
            repr(program)
            if len(program.inputs) == 3:
                program.run((x, x, x), device="simulator")
        return "opened"
    except runtime.Error as error:
        # "not found": a kernel's entry that the PTX does not have, which is looked up when the program runs
        refusals = ("corrupt", "invalid argument", "wrong target", "finding", "not found")
        assert len(str(error)) > 20 and error.status in refusals, error
        if error.status == "corrupt":  # the manifest, or a file that is not as it says or not there
            assert re.match(re.escape(f"cannot open the library '{path}': ") + r"[^:]+: .", str(error)), error
        return error.status


def test_no_utf8(library, tmp_path):
    """A byte that no UTF-8 has, in a value, in a key, and as the whole."""
    path = shutil.copytree(library, tmp_path / "lib")
    text = (library / "manifest.json").read_bytes()
    for content in (
        text.replace(b"scores", b"sc\xffres", 1),
        text.replace(b'"target"', b'"t\xe9rget"', 1),
        b"\xff\xfe\x00",
    ):
        assert opened(path, content) == "corrupt"
        with pytest.raises(runtime.Error, match=r"manifest.json: no JSON: .*(UTF-8|invalid literal|null character)"):
            weft.load(path)


def test_a_path_of_any_bytes(library, tmp_path):
    path = shutil.copytree(library, tmp_path / "l\udcffb ü")
    assert list(weft.load(path).programs) == ["scores"]
    with pytest.raises(runtime.Error, match="there is no such directory"):
        weft.load(tmp_path / "n\udcffne")
    with pytest.raises(ValueError, match=r"a path, but got .* which holds a null character"):
        weft.load(f"{library}\0/x")


def test_bytes(library, tmp_path, seed):
    rng = random.Random(seed)
    path = shutil.copytree(library, tmp_path / "lib")
    text = (library / "manifest.json").read_bytes()
    for _ in range(150):
        damaged = bytearray(text)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(damaged))
            kind = rng.random()
            if kind < 0.5:
                damaged[at] = rng.randrange(256)
            elif kind < 0.7:
                del damaged[at : at + rng.randint(1, 40)]
            elif kind < 0.9:
                damaged[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 8)))
            else:
                damaged[at:] = b""
            damaged = damaged or bytearray(b"{")
        outcome = opened(path, bytes(damaged))
        assert outcome in ("corrupt", "opened"), outcome  # the digest tells of all but white space


def places(value, path=()):
    """The ways to all parts of a manifest."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    if isinstance(value, list):
        for index in range(len(value)):
            yield from places(value[index], (*path, index))


ODD = (
    None, True, False, 0, -1, 1, 7, 2**31, 2**63, 2**64, -(2**70), 1e308, 0.5, "", "x", "q", "N", "N*", "cdiv(N, 0)",
    "9999999999999999999", "N*N*N*N*N*N*N*N", "(" * 100, "a/../b", "/etc/passwd", "ü", "\0", "x" * 5000, "fp99", "sm_1",
    [], {}, [[]], [None], ["1", "1", "1"], ["N"], {"pointer": 99}, {"pointer": -1}, {"stride": [0, 9]}, {"size": "Q"},
    {"real": "x"}, "sm_80", "*fp16", "i64", 16, [0], [99], [0, 0, 0, 0],
)  # fmt: skip


def test_structure(library, tmp_path, seed):
    rng = random.Random(seed)
    path = shutil.copytree(library, tmp_path / "lib")
    whole = json.loads((library / "manifest.json").read_text())
    everywhere = [place for place in places(whole) if place and place != ("digest",)]
    outcomes = {}
    for _ in range(250):
        manifest = copy.deepcopy(whole)
        for _ in range(rng.randint(1, 2)):
            place = rng.choice(everywhere)
            holder = manifest
            try:
                for key in place[:-1]:
                    holder = holder[key]
                if isinstance(holder, dict) != isinstance(place[-1], str):
                    continue  # the first change put another kind of value there
                kind = rng.random()
                if kind < 0.25:
                    del holder[place[-1]]
                elif kind < 0.35 and isinstance(holder, list):
                    holder.append(copy.deepcopy(rng.choice(holder)))
                elif kind < 0.6 and isinstance(place[-1], str):  # what the same key is elsewhere, as another entry
                    value = whole
                    for key in rng.choice([each for each in everywhere if each[-1] == place[-1]]):
                        value = value[key]
                    holder[place[-1]] = copy.deepcopy(value)
                else:
                    holder[place[-1]] = copy.deepcopy(rng.choice(ODD))
            except (KeyError, IndexError, TypeError):
                continue  # what the first change took away
        outcome = opened(path, sealed(manifest))
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    assert outcomes["corrupt"] > 100, outcomes


def test_parts_are_named(library, tmp_path):
    """Damage to PTX names the file; every error names what it is about."""
    path = shutil.copytree(library, tmp_path / "lib")
    (part,) = (file for file in path.iterdir() if file.suffix == ".ptx")
    content = part.read_bytes()
    for damaged in (content[:-1], content[:-1] + b"\xff", b"", content + b" "):
        part.write_bytes(damaged)
        with pytest.raises(runtime.Error, match=re.escape(f"cannot open the library '{path}': {part.name}: ")):
            weft.load(path)
    part.unlink()
    with pytest.raises(runtime.Error, match="No such file"):
        weft.load(path)
