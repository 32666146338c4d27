"""results.json to bench.png beside it. Runs in the rivals' environment, which has matplotlib."""

import json
import sys
from pathlib import Path
from statistics import median

from matplotlib import pyplot as plt  # pyright: ignore[reportMissingImports]

plt.switch_backend("Agg")

file = Path(sys.argv[1])
runs = json.loads(file.read_text())["runs"]
figure, axes = plt.subplots(2, len(runs), figsize=(8 * len(runs), 9), squeeze=False)
for place, run in enumerate(runs):
    arms = run["arms"][::-1]
    names = [each["title"].replace("`", "") for each in arms]
    costs = [[each["worker_us"] for each in arm["rounds"]] for arm in arms]
    middle = [median(each) for each in costs]
    pairs = list(zip(middle, costs, strict=True))
    around = [[m - min(each) for m, each in pairs], [max(each) - m for m, each in pairs]]
    colours = ["tab:blue" if arm["does"] == "same" else "tab:grey" for arm in arms]
    top, below = axes[0][place], axes[1][place]
    top.barh(names, middle, xerr=around, color=colours, capsize=3)
    by = "the model" if run.get("answered_by") == "model" else "fixed answers"
    top.set_title(f"{by}, batches of {run['batch']}: median, least and most")
    top.set_xlabel("worker CPU, µs a ticket; grey: carrying alone")
    for shift, share in ((0.2, 0.5), (-0.2, 0.8)):
        late = [
            next((each["p99_ms"] for each in arm["latencies"] if each["share"] == share), 0) for arm in arms
        ]
        below.barh(
            [n + shift for n in range(len(arms))], late, height=0.4, label=f"at {share:.0%} of its own rate"
        )
    below.set_yticks(range(len(arms)), names)
    below.set_xscale("log")
    below.set_xlabel("p99 from sent to readable, ms")
    below.legend()
figure.tight_layout()
figure.savefig(file.with_name("bench.png"), dpi=110)
