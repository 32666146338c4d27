"""A model folder that is not what its manifest says is refused, precisely and in one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ticketgate.agents.scoring import ScorerError, open_scorer
from ticketgate.agents.scoring.contracts import bi_encoder_head, register_contract
from ticketgate.agents.scoring.folder import load_folder

Build = Callable[..., Path]
Document = dict[str, Any]


def refusal(folder: Path) -> str:
    with pytest.raises(ScorerError) as refused:
        open_scorer("onnx", model=folder)
    message = str(refused.value)
    assert "\n" not in message
    assert message.startswith(f"TICKETGATE_MODEL: model folder {folder}: ")
    return message


def test_a_whole_folder_opens(build: Build) -> None:
    scorer = open_scorer("onnx", model=build())

    assert scorer.model.id == "tiny@1"


def test_a_missing_folder(tmp_path: Path) -> None:
    assert "no such folder" in refusal(tmp_path / "nowhere")


def test_a_missing_manifest(tmp_path: Path) -> None:
    assert "cannot read manifest.json: No such file" in refusal(tmp_path)


def test_a_missing_file(build: Build) -> None:
    folder = build()
    (folder / "head.onnx").unlink()

    assert "cannot read head.onnx: No such file" in refusal(folder)


def test_a_changed_file_is_named_with_both_hashes(build: Build) -> None:
    folder = build()
    expected = json.loads((folder / "manifest.json").read_text())["files"]["head.onnx"]["sha256"]
    (folder / "head.onnx").write_bytes(b"other")

    message = refusal(folder)

    assert (
        f"head.onnx has another sha256: expected {expected}, found d9298a10d1b0735837dc4bd85dac641b"
        in message
    )


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "sub/../../secret"])
def test_a_path_that_leaves_the_folder(build: Build, name: str) -> None:
    folder = build(lambda m: m["files"].update({name: {"sha256": "0" * 64, "bytes": 0}}))
    (folder.parent / "secret").write_text("")

    assert f'"{name}" lies outside the folder' in refusal(folder)


def test_a_link_that_leaves_the_folder(build: Build) -> None:
    folder = build()
    moved = folder.parent / "moved.onnx"
    (folder / "head.onnx").rename(moved)
    (folder / "head.onnx").symlink_to(moved)

    assert '"head.onnx" lies outside the folder' in refusal(folder)


def test_an_unknown_contract_is_refused_with_those_that_are_known(build: Build) -> None:
    folder = build(lambda m: m.update(contract="crystal-ball"))

    message = refusal(folder)

    assert 'unknown contract "crystal-ball"; the contracts known here are bi-encoder-head, ' in message


@pytest.mark.parametrize("kind", ["inputs", "outputs"])
def test_a_tensor_that_the_graph_does_not_have(build: Build, kind: str) -> None:
    def rename(document: Document) -> None:
        tensors = document["graphs"]["head"][kind]
        tensors[next(iter(tensors))] = "ghost"

    message = refusal(build(rename))

    assert f'head.onnx has no {kind[:-1]} "ghost"' in message


def test_a_tensor_that_the_contract_needs_and_the_manifest_does_not_name(build: Build) -> None:
    message = refusal(build(lambda m: m["graphs"]["encoder"]["inputs"].pop("mask")))

    assert "contract bi-encoder-head has the inputs ids, mask, the manifest names ids" in message


def test_a_graph_that_the_contract_needs(build: Build) -> None:
    assert 'needs a graph "head"' in refusal(build(lambda m: m["graphs"].pop("head")))


def test_a_graph_of_a_file_that_is_not_listed(build: Build) -> None:
    message = refusal(build(lambda m: m["graphs"]["head"].update(file="unlisted.onnx")))

    assert 'graph head names "unlisted.onnx", which is not in files' in message


def test_answers_other_than_the_conformance_rows(build: Build) -> None:
    message = refusal(build(bias=0.01))

    assert "conformance.json, row 0: answers.card.noul: expected 0." in message
    assert "found 0." in message


def test_another_template_shows_in_the_conformance_rows(build: Build) -> None:
    message = refusal(build(lambda m: m["template"].update(state="angry {state}")))

    assert "conformance.json, row 0: answers.card.noul" in message


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda m: m.update(colour="red"), "colour: extra inputs are not permitted"),
        (lambda m: m.update(schema="model/9"), "schema"),
        (lambda m: m["limits"].update(window=2), "limits.window"),
        (lambda m: m["files"]["head.onnx"].update(sha256="short"), "files.head.onnx.sha256"),
        (lambda m: m["calibration"]["noul"].pop("bias"), "calibration: noul.bias"),
        (
            lambda m: m["template"].update(level="{label}"),
            "template: level: value error, no such place to fill: label",
        ),
        (
            lambda m: m["session"].update({"x": "y"}) if "session" in m else m.update(session={"x": 1}),
            "session.x",
        ),
    ],
)
def test_a_manifest_that_says_something_else(
    build: Build, change: Callable[[Document], None], where: str
) -> None:
    assert f"manifest.json: {where}" in refusal(build(change))


def test_a_file_that_is_no_graph(build: Build) -> None:
    def swap(document: Document) -> None:
        document["graphs"]["head"]["file"] = "tokenizer.json"

    assert "onnxruntime cannot open tokenizer.json" in refusal(build(swap))


def test_a_file_that_is_no_tokenizer(build: Build) -> None:
    assert "tokenizers cannot read head.onnx" in refusal(
        build(lambda m: m["tokenizer"].update(file="head.onnx"))
    )


def test_the_identity_follows_what_decides_and_nothing_else(build: Build) -> None:
    folder = build()
    before = load_folder(folder).model
    document = json.loads((folder / "manifest.json").read_text())

    document["about"] = {"metrics": {"auc": 1}}
    (folder / "manifest.json").write_text(json.dumps(document))
    described = load_folder(folder).model
    document["calibration"]["noul"]["bias"] = 0.5
    (folder / "manifest.json").write_text(json.dumps(document))
    recalibrated = load_folder(folder).model

    assert described == before
    assert recalibrated.hash != before.hash


def test_a_contract_cannot_be_registered_twice() -> None:
    with pytest.raises(ValueError, match="registered already"):
        register_contract(bi_encoder_head.NAME, bi_encoder_head.BiEncoderHead)
