"""One ONNX graph, opened and run by the names that its contract uses.

Promise: the graph has every tensor that the contract asked for, and runs on the CPU with as many threads
as it was given. Safe to run from several threads at once.
"""

from collections.abc import Mapping

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import (
    onnxruntime_pybind11_state as ort_errors,  # pyright: ignore[reportAttributeAccessIssue]  # compiled, no stubs
)
from ticketgate.agents.scoring.folder import ModelFolder

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

# 3: errors. What onnxruntime warns of is a matter for whoever builds a model, not for a worker's log.
_LOG_ERRORS = 3


class GraphSession:
    """An opened graph."""

    def __init__(self, session: onnxruntime.InferenceSession, inputs: Mapping[str, str], output: str) -> None:
        self._session, self._inputs, self._output = session, inputs, output

    def run(self, **inputs: Array) -> NDArray[np.float32]:
        """The graph's one output for these inputs, by the contract's names."""
        fed = {self._inputs[name]: value for name, value in inputs.items()}
        return np.asarray(self._session.run([self._output], fed)[0], np.float32)


def open_graph(
    folder: ModelFolder, name: str, *, inputs: tuple[str, ...], output: str, threads: int
) -> GraphSession:
    """Open the graph that the manifest calls `name`. `inputs` and `output` are the contract's names.

    Raises ScorerError if the manifest or the graph lacks one of them, or the graph cannot be opened.
    """
    manifest = folder.manifest
    if name not in manifest.graphs:
        raise folder.refusal(f'contract {manifest.contract} needs a graph "{name}"')
    graph = manifest.graphs[name]
    for kind, wanted, given in (("input", set(inputs), graph.inputs), ("output", {output}, graph.outputs)):
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
    return GraphSession(session, graph.inputs, graph.outputs[output])


def _open(folder: ModelFolder, file: str, *, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _LOG_ERRORS
    # Waiting threads sleep: spinning would take the CPU from the worker's event loop beside them.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    for key, value in folder.manifest.session.items():
        options.add_session_config_entry(key, value)
    try:
        return onnxruntime.InferenceSession(folder.content[file], options, providers=["CPUExecutionProvider"])
    except ENGINE_ERRORS as err:
        raise folder.refusal(f"onnxruntime cannot open {file}: {' '.join(str(err).split())}") from err


def _listed(names: object) -> str:
    return ", ".join(sorted(names)) if isinstance(names, (set, list, dict)) else str(names)
