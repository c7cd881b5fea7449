# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.draw: what is in the files, pixel by pixel and rectangle by rectangle."""

import re
import struct
import xml.etree.ElementTree as xml
import zlib

import numpy as np
import pytest
import weft
from weft import drawing
from weft.drawing import figure
from weft.drawing.panels import heat_panel, pattern_panels
from weft.drawing.svg import TITLE, layout, ticks

SVG = "{http://www.w3.org/2000/svg}"


def pixels(path):
    """A PNG file's image [height, width, 3], chunks checked."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length]) == (zlib.crc32(kind + body),)
        chunks[kind] = body
        at += 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_png_says_what_it_shows(tmp_path):
    """All that the SVG says, where matplotlib is: a title, both axes with their numbers, captions and legends."""
    text = pytest.importorskip("matplotlib.text")
    for x, n in ((weft.window(3, 1), 64), (np.linspace(-1, 2, 12).reshape(3, 4), None)):
        panels = pattern_panels(x, n, n, 8, 0, 0) if n else [heat_panel(x, n, 0, 0)]
        made = figure.figure(panels, "a < b & $c")
        made.draw_without_rendering()
        weft.draw(x, tmp_path / "x.svg", n, block=8, title="a < b & $c")
        said = [each.get_text() for each in made.findobj(text.Text)]
        for each in texts(tmp_path / "x.svg"):
            assert said.count(each) >= texts(tmp_path / "x.svg").count(each)
    weft.draw(weft.causal(), tmp_path / "x.png", 12, title="here")
    data = pixels(tmp_path / "x.png")
    assert data.shape[:2] == layout(pattern_panels(weft.causal(), 12, 12, None, 0, 0), "here")[:0:-1]
    left, size = layout(pattern_panels(weft.causal(), 12, 12, None, 0, 0), "here")[0][0], 384
    at = np.arange(12) * size // 12 + size // 24
    full, empty = np.array(drawing.FULL), np.array(drawing.EMPTY)
    wanted = np.where(weft.causal().matrix(12)[..., None], full, empty)
    np.testing.assert_array_equal(data[TITLE + at[:, None], left + at], wanted)
    assert (data[:TITLE] < 100).any() and (data[TITLE : TITLE + size, : left - 5] < 200).any()


def test_png_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setattr(figure, "available", lambda: False)
    path = tmp_path / "causal.png"
    weft.draw(weft.causal(), path, 12, block=(3, 4))
    image = pixels(path)
    # Two panels of 384 pixels, each in a frame of one, 24 around and between.
    assert image.shape == (384 + 2 + 48, 2 * 386 + 72, 3)
    matrix, blocks = image[25 : 25 + 384, 25 : 25 + 384], image[25 : 25 + 384, 435 : 435 + 384]
    full, empty = np.array(drawing.FULL), np.array(drawing.EMPTY)
    at = np.arange(12) * 32 + 16
    np.testing.assert_array_equal(matrix[at[:, None], at], np.where(weft.causal().matrix(12)[..., None], full, empty))
    palette = np.array([drawing.EMPTY, drawing.PARTIAL, drawing.FULL])
    rows, columns = np.arange(4) * 96 + 48, np.arange(3) * 128 + 64
    np.testing.assert_array_equal(blocks[rows[:, None], columns], palette[weft.causal().blocks_summary(12, 12, 3, 4)])


def test_svg_of_a_pattern(tmp_path):
    path = tmp_path / "window.svg"
    pattern = weft.window(3, 1)
    weft.draw(pattern, path, 16, 24, block=4)
    root = xml.fromstring(path.read_text())
    groups = [g for g in root.iter(SVG + "g") if "transform" in g.attrib]
    assert len(groups) == 2
    cells = np.full((16, 24), "", object)
    for rect in groups[0]:
        x, y, width = (int(rect.attrib[name]) for name in ("x", "y", "width"))
        assert (cells[y, x : x + width] == "").all()
        cells[y, x : x + width] = rect.attrib["fill"]
    np.testing.assert_array_equal(cells == "#{:02x}{:02x}{:02x}".format(*drawing.FULL), pattern.matrix(16, 24))
    classes = pattern.blocks_summary(16, 24, 4, 4)
    texts = " ".join(text.text for text in root.iter(SVG + "text"))
    counts = {name: int(re.search(rf"(\d+) {name}", texts)[1]) for name in ("empty", "partial", "full")}
    assert counts == {name: int((classes == i).sum()) for i, name in enumerate(("empty", "partial", "full"))}
    assert "blocks of 4 × 4" in texts and "16 queries × 24 keys" in texts


def texts(path):
    """What an SVG says, text by text."""
    return [text.text for text in xml.fromstring(path.read_text()).iter(SVG + "text")]


def numbers(said):
    return [int(each) for each in said if re.fullmatch(r"[0-9]+", each)]


def test_svg_says_what_it_shows(tmp_path):
    """A title, both axes with their numbers, and a legend, for each panel; numbers lie where they count."""
    path = tmp_path / "window.svg"
    weft.draw(weft.window(3, 1), path, 64, 96, block=8, title="a < b & c")
    said = texts(path)
    assert said[0] == "a < b & c" and xml.fromstring(path.read_text()).find(SVG + "title").text == "a < b & c"
    assert said.count("query") == said.count("key") == 2
    assert {"no", "attends"} <= set(said) and any(re.fullmatch(r"\d+ partial", each) for each in said)
    assert numbers(said) == 2 * [0, 16, 32, 48, 64, 0, 20, 40, 60, 80]
    places = [(float(t.attrib["x"]), t.text) for t in xml.fromstring(path.read_text()).iter(SVG + "text")]
    at = {int(text): x for x, text in places if text in ("20", "40", "60", "80") and x < 450}
    assert at[40] - at[20] == pytest.approx(384 * 20 / 96, abs=0.01)

    weft.draw(weft.causal(), tmp_path / "plain.svg", 10, head=3)
    assert texts(tmp_path / "plain.svg")[0] == "Which queries attend to which keys, head 3"
    weft.draw(np.linspace(-1, 2, 12).reshape(3, 4), tmp_path / "heat.svg")
    said = texts(tmp_path / "heat.svg")
    assert {"Values of ndarray", "row", "column", "-2", "2"} <= set(said)
    with pytest.raises(TypeError, match="expected 'title' to be text, but got"):
        weft.draw(weft.causal(), path, title=3)


def test_ticks_are_round_and_few():
    for count in range(1, 3000):
        marks = ticks(count)
        assert marks[0] == 0 and 2 <= len(marks) <= 6 and marks[-1] <= count < marks[-1] + marks.step


def test_heat_maps(tmp_path, monkeypatch):
    monkeypatch.setattr(figure, "available", lambda: False)
    values = np.linspace(-1, 2, 12).reshape(3, 4)
    weft.draw(values, tmp_path / "heat.png")
    image = pixels(tmp_path / "heat.png")
    lowest, highest = image[30, 30], image[image.shape[0] - 30, image.shape[1] - 30]
    assert lowest[2] > lowest[0] and highest[0] > highest[2]  # blue below zero, red above
    weft.draw(values[None, None], tmp_path / "heat.svg")
    assert "3 × 4, from -2 to 2" in (tmp_path / "heat.svg").read_text()
    weft.draw(np.array([[0.0, np.nan, np.inf]]), tmp_path / "odd.png")

    class Mixer:
        def matrix(self, n):
            return np.eye(n)[None, None]

    weft.draw(Mixer(), tmp_path / "mixer.svg", 5)
    assert "5 × 5, from 0 to 1" in (tmp_path / "mixer.svg").read_text()


def test_heads_and_large_matrices(tmp_path):
    heads = weft.per_head([weft.causal(), weft.full()])
    weft.draw(heads, tmp_path / "head.svg", 8, head=1)
    assert "100.0%" in (tmp_path / "head.svg").read_text()
    weft.draw(weft.causal(), tmp_path / "long.svg", 1 << 16, block=1024)
    assert "65536 queries" not in (tmp_path / "long.svg").read_text()
    weft.draw(weft.strided(2), tmp_path / "dense.svg", 512)
    assert "data:image/png;base64" in (tmp_path / "dense.svg").read_text()


def test_errors(tmp_path):
    with pytest.raises(weft.CompilationError, match=r"expected a path that ends in .svg or .png, but got 'x.gif'"):
        weft.draw(weft.causal(), tmp_path / "x.gif")
    with pytest.raises(weft.CompilationError, match="expected a pattern, a mixer or a matrix to draw, but got 'str'"):
        weft.draw("causal", tmp_path / "x.svg")
    with pytest.raises(weft.CompilationError, match="expected a batch and a head that are there, but got 2 of 2"):
        weft.draw(weft.per_head([weft.causal(), weft.full()]), tmp_path / "x.svg", 8, head=2)
