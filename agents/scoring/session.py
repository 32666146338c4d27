"""One ONNX graph, opened and run by the names that its contract uses.

Promise: the graph has every tensor that the contract asked for, and runs on the CPU with as many threads
as it was given. All its data are bytes that were hashed, and all its operators onnxruntime's own. Safe to run from
several threads at once.
"""

from collections.abc import Mapping

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import (
    onnxruntime_pybind11_state as ort_errors,  # pyright: ignore[reportAttributeAccessIssue]  # compiled, no stubs
)
from ticketgate.agents.scoring.folder import Graph, ModelFolder
from ticketgate.agents.scoring.graph_file import NotAGraph, read_reach
from ticketgate.codecs.values.malformed import quote

Array = NDArray[np.float32] | NDArray[np.int64]

# All that onnxruntime raises on a graph or an input it cannot use; they have no base class of their own.
ENGINE_ERRORS = (
    ort_errors.Fail,
    ort_errors.InvalidArgument,
    ort_errors.InvalidGraph,
    ort_errors.InvalidProtobuf,
    ort_errors.NoModel,
    ort_errors.NotImplemented,
    ort_errors.RuntimeException,
)

_DTYPES: Mapping[str, type[np.generic]] = {
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
}

# 3: errors. What onnxruntime warns of is a matter for whoever builds a model, not for a worker's log.
_LOG_ERRORS = 3


class GraphSession:
    """An opened graph."""

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        inputs: Mapping[str, str],
        output: str,
        dtypes: Mapping[str, type[np.generic]],
    ) -> None:
        self._session, self._inputs, self._output, self._dtypes = session, inputs, output, dtypes

    @property
    def inputs(self) -> frozenset[str]:
        """The contract's names of what it takes."""
        return frozenset(self._inputs)

    def run(self, **inputs: Array) -> NDArray[np.float32]:
        """The graph's one output for these inputs, by the contract's names, each cast to what the graph declares."""
        fed = {
            self._inputs[name]: value.astype(self._dtypes[name], copy=False) for name, value in inputs.items()
        }
        return np.asarray(self._session.run([self._output], fed)[0], np.float32)


def open_graph(
    folder: ModelFolder,
    name: str,
    *,
    inputs: tuple[str, ...],
    output: str,
    threads: int,
    optional: tuple[str, ...] = (),
) -> GraphSession:
    """Open the graph that the manifest calls `name`. `inputs` and `output` are the contract's names; of `optional`
    inputs the manifest names those that the graph has.

    Raises ScorerError if the manifest or the graph lacks one of them, or the graph cannot be opened.
    """
    manifest = folder.manifest
    if name not in manifest.graphs:
        raise folder.refusal(f'contract {manifest.contract} needs a graph "{name}"')
    graph = manifest.graphs[name]
    wanted_inputs = set(inputs) | (set(optional) & graph.inputs.keys())
    for kind, wanted, given in (("input", wanted_inputs, graph.inputs), ("output", {output}, graph.outputs)):
        if wanted != given.keys():
            raise folder.refusal(
                f"graph {name}: contract {manifest.contract} has the {kind}s {_listed(wanted)}, "
                f"the manifest names {_listed(given)}"
            )
    session = _open(folder, graph.file, threads=threads)
    there = {
        "input": [tensor.name for tensor in session.get_inputs()],
        "output": [tensor.name for tensor in session.get_outputs()],
    }
    for kind, names in (("input", graph.inputs), ("output", graph.outputs)):
        for tensor in names.values():
            if tensor not in there[kind]:
                raise folder.refusal(f'{graph.file} has no {kind} "{tensor}", but {_listed(there[kind])}')
    for tensor in there["input"]:
        if tensor not in graph.inputs.values():
            raise folder.refusal(f'{graph.file} needs an input "{tensor}", which the manifest does not name')
    return GraphSession(session, graph.inputs, graph.outputs[output], _dtypes(folder, graph, session))


def _dtypes(
    folder: ModelFolder, graph: Graph, session: onnxruntime.InferenceSession
) -> dict[str, type[np.generic]]:
    """What the graph declares each of its inputs to be, by the contract's name."""
    declared = {tensor.name: tensor.type for tensor in session.get_inputs()}
    found = {}
    for name, tensor in graph.inputs.items():
        if declared[tensor] not in _DTYPES:
            raise folder.refusal(
                f'{graph.file}: input "{tensor}" is a {declared[tensor]}; known are {_listed(_DTYPES)}'
            )
        found[name] = _DTYPES[declared[tensor]]
    return found


def _open(folder: ModelFolder, file: str, *, threads: int) -> onnxruntime.InferenceSession:
    content = folder.content[file]
    options = onnxruntime.SessionOptions()
    _give_external_data(folder, file, options)
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _LOG_ERRORS
    # Waiting threads sleep: spinning would take the CPU from the worker's event loop beside them.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Only what was looked into is opened: of a graph in onnxruntime's own format nothing was.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    for key, value in folder.manifest.session.items():
        options.add_session_config_entry(key, value)
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except ENGINE_ERRORS as err:
        raise folder.refusal(f"onnxruntime cannot open {file}: {' '.join(str(err).split())}") from err


def _give_external_data(folder: ModelFolder, file: str, options: onnxruntime.SessionOptions) -> None:
    """Hand over the bytes that were hashed of what the graph keeps in other files; refuse all else that it reaches."""
    try:
        reach = read_reach(folder.content[file])
    except NotAGraph as err:
        raise folder.refusal(f"onnxruntime cannot open {file}: {err}") from err
    if reach.domains or reach.operators:
        named = ", ".join(quote(name) for name in sorted({*reach.domains, *reach.operators}))
        raise folder.refusal(
            f"{file} has operators that are not onnxruntime's own: {named}",
            remedy="export the model without custom operators",
        )
    names = sorted(reach.locations)
    for name in names:
        if name not in folder.content:
            raise folder.refusal(
                f"{file} keeps data in {quote(name)}, which is not in files",
                remedy="list that file in the manifest with its sha256, or save the model in one file",
            )
    if names:
        contents = [folder.content[name] for name in names]
        options.add_external_initializers_from_files_in_memory(
            names, contents, [len(each) for each in contents]
        )


def _listed(names: object) -> str:
    return ", ".join(sorted(names)) if isinstance(names, (set, list, dict)) else str(names)
