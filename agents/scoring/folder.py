"""A model folder: the manifest, and files that are what the manifest says.

Promise: after `load_folder`, every file that the manifest lists lies inside the folder, has the SHA-256 it
says, and its bytes are held: what was hashed is what will run, whatever is written to the disk meanwhile.
What a contract needs beyond that (tensor names, its calibration) it checks itself when it opens.
"""

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, ValidationError
from ticketgate.agents.scoring.scorer import ScorerError
from ticketgate.codecs.records.decision import ModelRef
from ticketgate.codecs.systemone.questions import MAX_OPTIONS
from ticketgate.codecs.values.strict import DEFAULT_MAX_BYTES, Malformed, canonical, decode

MANIFEST = "manifest.json"

_RESTORE = "restore the model folder, or set it to another one"


# What a manifest may set of onnxruntime: how fast and how exactly it computes. Others write files, read folders or lift
# limits.
SessionEntry = Literal[
    "session.disable_quant_qdq",
    "session.disable_double_qdq_remover",
    "session.disable_qdq_constant_folding",
    "session.enable_quant_qdq_cleanup",
    "session.qdqisint8allowed",
    "session.disable_prepacking",
    "session.disable_aot_function_inlining",
    "session.dynamic_block_base",
    "session.set_denormal_as_zero",
    "session.intra_op.allow_spinning",
    "session.inter_op.allow_spinning",
]

# Protobuf holds no larger graph.
MAX_FILE_BYTES = 2**31
MAX_FOLDER_BYTES = 2**32
# Both are parsed whole, into many times their size.
MAX_TOKENIZER_BYTES = 64 * 2**20
MAX_CONFORMANCE_BYTES = 16 * 2**20


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FileEntry(_Strict):
    """What a file must be."""

    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(ge=0)]


class Graph(_Strict):
    """One ONNX graph. `inputs` and `outputs` map the contract's names to the graph's own tensor names."""

    file: str
    inputs: dict[str, str]
    outputs: dict[str, str]


class TokenizerEntry(_Strict):
    """A `tokenizers` JSON file, and the id that padding has in its vocabulary."""

    file: str
    pad_id: Annotated[int, Field(ge=0)]


class Limits(_Strict):
    """`window`: how many tokens of one text the model reads, its special tokens among them.

    `windows`: in how many of them a text is read that one does not hold, by contracts that can.
    `options`: how many options one question may have; left out, as many as the protocol allows.
    """

    window: Annotated[int, Field(ge=8)]
    windows: Annotated[int, Field(ge=1, le=16)] = 1
    options: Annotated[int, Field(ge=2, le=MAX_OPTIONS)] | None = None


class Manifest(_Strict):
    """manifest.json. All but `about` decides what the model answers, and is part of its identity.

    `template` and `calibration` are the contract's, which checks them; `session` are onnxruntime's session
    options; `languages` are the ISO 639 codes of those that the model reads, left out if it is not known: about text in
    another the model abstains; `about` is for people: provenance, licence, attributions, what was measured.
    """

    schema_: Annotated[Literal["model/1"], Field(alias="schema")]
    name: Annotated[str, StringConstraints(min_length=1)]
    version: Annotated[str, StringConstraints(min_length=1)]
    contract: str
    files: dict[str, FileEntry]
    graphs: dict[str, Graph]
    tokenizer: TokenizerEntry
    template: dict[str, str]
    calibration: dict[str, dict[str, float]]
    limits: Limits
    languages: Annotated[list[str], Field(min_length=1)] | None = None
    session: dict[SessionEntry, Annotated[str, StringConstraints(pattern=r"^[0-9]{1,4}$")]] = {}
    conformance: str
    about: dict[str, JsonValue] = {}


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A loaded folder. `content`: the bytes of every listed file by the name in the manifest."""

    path: Path
    manifest: Manifest
    model: ModelRef
    content: Mapping[str, bytes] = field(repr=False)

    def refusal(self, what: str, *, remedy: str = _RESTORE) -> ScorerError:
        """An error about this folder, to be raised."""
        return _refusal(self.path, what, remedy=remedy)


def load_folder(path: Path) -> ModelFolder:
    """Read and check a model folder. Raises ScorerError, which names the file and what is wrong with it."""
    manifest = _read_manifest(path)
    _require_sizes(path, manifest)
    content = {name: _read_file(path, name, entry) for name, entry in manifest.files.items()}
    needed = {
        **{f"graph {name}": graph.file for name, graph in manifest.graphs.items()},
        "the tokenizer": manifest.tokenizer.file,
        "conformance": manifest.conformance,
    }
    for who, name in needed.items():
        if name not in content:
            raise _refusal(path, f'{MANIFEST}: {who} names "{name}", which is not in files')
    return ModelFolder(path=path, manifest=manifest, model=_identity(manifest), content=content)


def _read_manifest(path: Path) -> Manifest:
    if not path.is_dir():
        raise _refusal(
            path, "no such folder", remedy="set it to a model folder, or leave it out for the default"
        )
    try:
        written = _read(path / MANIFEST, DEFAULT_MAX_BYTES)
    except OSError as err:
        raise _refusal(path, f"cannot read {MANIFEST}: {err.strerror or err}") from err
    value = decode(written)
    if isinstance(value, Malformed):
        raise _refusal(path, f"{MANIFEST}: {value.reason}")
    try:
        return Manifest.model_validate(value)
    except ValidationError as err:
        raise _refusal(path, f"{MANIFEST}: {first_fault(err)}") from err


def _read_file(path: Path, name: str, entry: FileEntry) -> bytes:
    """The file's bytes, if it lies in the folder and is what the manifest says."""
    folder = path.resolve()
    file = (folder / name).resolve()
    if not file.is_relative_to(folder):
        raise _refusal(path, f'{MANIFEST}: "{name}" lies outside the folder')
    try:
        content = _read(file, MAX_FILE_BYTES)
    except OSError as err:
        raise _refusal(path, f"cannot read {name}: {err.strerror or err}") from err
    if len(content) > MAX_FILE_BYTES:
        raise _refusal(path, f"{name} is larger than {MAX_FILE_BYTES} bytes")
    found = hashlib.sha256(content).hexdigest()
    if found != entry.sha256:
        size = "" if len(content) == entry.bytes else f" ({len(content)} bytes, not {entry.bytes})"
        raise _refusal(path, f"{name} has another sha256: expected {entry.sha256}, found {found}{size}")
    if len(content) != entry.bytes:
        raise _refusal(path, f"{name} has {len(content)} bytes, not {entry.bytes}")
    return content


def _read(file: Path, most: int) -> bytes:
    """At most `most` bytes and one. Raises OSError, also for what is no file: a pipe would never end."""
    if not file.is_file():
        file.stat()
        raise OSError(0, "no regular file")
    with file.open("rb") as opened:
        return opened.read(most + 1)


def _require_sizes(path: Path, manifest: Manifest) -> None:
    """Before anything but the manifest is read. Raises ScorerError."""
    limits = {
        manifest.tokenizer.file: MAX_TOKENIZER_BYTES,
        manifest.conformance: MAX_CONFORMANCE_BYTES,
    }
    for name, entry in manifest.files.items():
        most = limits.get(name, MAX_FILE_BYTES)
        if entry.bytes > most:
            raise _refusal(path, f"{name} has {entry.bytes} bytes, more than the {most} that are read")
        with contextlib.suppress(OSError):  # said where it is read
            size = (path / name).stat().st_size
            if size > most:
                raise _refusal(path, f"{name} has {size} bytes, more than the {most} that are read")
    if (total := sum(entry.bytes for entry in manifest.files.values())) > MAX_FOLDER_BYTES:
        raise _refusal(path, f"its files have {total} bytes, more than the {MAX_FOLDER_BYTES} that are read")


def _identity(manifest: Manifest) -> ModelRef:
    """name@version, and the SHA-256 of all that decides: the files' hashes, template, calibration, limits."""
    decides = manifest.model_dump(mode="json", by_alias=True, exclude={"about"})
    # As it was before there were such entries: a folder's identity stays.
    if manifest.limits.options is None:
        del decides["limits"]["options"]
    if manifest.limits.windows == 1:
        del decides["limits"]["windows"]
    if manifest.languages is None:
        del decides["languages"]
    return ModelRef(
        id=f"{manifest.name}@{manifest.version}", hash=hashlib.sha256(canonical(decides)).hexdigest()
    )


def first_fault(err: ValidationError) -> str:
    """The first fault pydantic found, in one line: where, and what."""
    fault = err.errors(include_url=False)[0]
    where = ".".join(str(part) for part in fault["loc"])
    return f"{where}: {fault['msg'][:1].lower()}{fault['msg'][1:]}" if where else fault["msg"]


def _refusal(path: Path, what: str, *, remedy: str = _RESTORE) -> ScorerError:
    return ScorerError(f"model folder {path}: {what}", remedy=remedy)
