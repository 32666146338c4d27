"""A model folder is what was hashed: nothing that a graph or a manifest names reaches beyond it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx.external_data_helper import set_external_data
from ticketgate.agents.scoring import ScorerError, open_scorer
from ticketgate.agents.scoring.graph_file import NotAGraph, read_reach

from ...support import tiny
from .test_joint_contracts import pair


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return pair(tmp_path / "model")


def rehash(folder: Path, *, without: str = "", change: Callable[[Any], object] = lambda _: None) -> None:
    """As an attacker who may write the manifest would."""
    document = json.loads((folder / "manifest.json").read_text())
    document["files"] = {
        path.name: {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}
        for path in folder.iterdir()
        if path.name not in ("manifest.json", without)
    }
    change(document)
    (folder / "manifest.json").write_text(json.dumps(document))


def move_out(folder: Path, location: str) -> bytes:
    """Move the model's table to external data at `location`; its bytes."""
    model = tiny.pair_model()
    (table,) = (each for each in model.graph.initializer if each.name == "table")
    data = bytes(table.raw_data)
    set_external_data(table, location=location, offset=0, length=len(data))
    table.ClearField("raw_data")
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return data


def refusal(folder: Path) -> str:
    with pytest.raises(ScorerError) as caught:
        open_scorer("onnx", model=folder)
    return str(caught.value)


@pytest.mark.parametrize("location", ["w.bin", "../w.bin", "sub/../w.bin"])
def test_external_data_that_were_not_hashed_are_refused(
    folder: Path, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = move_out(folder, location)
    rehash(folder)
    # Where onnxruntime would look: the working directory.
    working = folder.parent / "working"
    (working / "sub").mkdir(parents=True)
    (working / "w.bin").write_bytes(data)
    (folder.parent / "w.bin").write_bytes(data)
    monkeypatch.chdir(working)

    assert f'keeps data in "{location}", which is not in files' in refusal(folder)


def test_external_data_that_were_hashed_are_read_from_those_bytes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = move_out(folder, "w.bin")
    (folder / "w.bin").write_bytes(data)
    rehash(folder)
    working = folder.parent / "working"
    working.mkdir()
    (working / "w.bin").write_bytes(np.zeros(len(data), np.uint8).tobytes())
    monkeypatch.chdir(working)

    open_scorer("onnx", model=folder)  # its conformance rows would fail with other weights


def test_external_data_inside_a_graph_inside_a_node_are_seen(folder: Path) -> None:
    model = tiny.pair_model()
    inner = helper.make_graph([], "inner", [], [])
    hidden = onnx.TensorProto(name="h", data_type=1, dims=[1], data_location=onnx.TensorProto.EXTERNAL)
    hidden.external_data.add(key="location", value="h.bin")
    inner.initializer.append(hidden)
    model.graph.node.append(helper.make_node("If", ["c"], ["d"], then_branch=inner, else_branch=inner))

    assert read_reach(model.SerializeToString()).locations == {"h.bin"}


@pytest.mark.parametrize(
    "entry", ["session.collect_node_memory_stats_to_file", "session.load_model_format", "session.x"]
)
def test_a_session_entry_that_is_not_on_the_list_is_refused(folder: Path, entry: str) -> None:
    rehash(folder, change=lambda document: document.update(session={entry: "1"}))

    assert f"manifest.json: {entry}" in refusal(folder).replace("session.session.", "session.")


def test_a_custom_operator_is_refused_by_its_domain(folder: Path) -> None:
    model = tiny.pair_model()
    model.graph.node.append(helper.make_node("Open", ["logit"], ["door"], domain="evil"))
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    rehash(folder)

    assert 'operators that are not onnxruntime\'s own: "evil"' in refusal(folder)


def test_a_file_larger_than_the_manifest_says_is_refused_before_it_is_parsed(folder: Path) -> None:
    document = json.loads((folder / "manifest.json").read_text())
    document["files"]["tokenizer.json"]["bytes"] = 2**30
    (folder / "manifest.json").write_text(json.dumps(document))

    assert "tokenizer.json has 1073741824 bytes, more than the" in refusal(folder)


def test_a_pipe_is_no_file(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    os.mkfifo(folder / "tokenizer.json")

    assert "cannot read tokenizer.json: no regular file" in refusal(folder)


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with contextlib.suppress(NotAGraph):
        read_reach(content)


@settings(deadline=None)
@given(st.integers(0, 4000), st.integers(0, 255))
def test_a_changed_byte_is_read_or_refused(place: int, byte: int) -> None:
    content = bytearray(tiny.pair_model().SerializeToString())
    content[place % len(content)] = byte
    with contextlib.suppress(NotAGraph):
        read_reach(bytes(content))
