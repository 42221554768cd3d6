"""What the rounds of a comparison say: medians, spreads, ratios, and the Markdown that shows them.

`results` is the object that run.py keeps in results.json: `conditions`, `systems` (key, label, ours) in the order of
the table, `shapes` ([servers, workers]) and `runs`, each with round, key, servers, workers and either ms_p50 or error.
"""

import statistics
from dataclasses import dataclass
from typing import Any

Results = dict[str, Any]
Shape = tuple[int, int]  # servers, workers


@dataclass(frozen=True)
class Spread:
    """Of one figure over the rounds."""

    median: float
    low: float
    high: float
    count: int


def spread(values: list[float]) -> Spread | None:
    return Spread(statistics.median(values), min(values), max(values), len(values)) if values else None


def shapes(results: Results) -> list[Shape]:
    return [(servers, workers) for servers, workers in results["shapes"]]


def shape_name(shape: Shape) -> str:
    servers, workers = shape
    return f"{servers} server{'s' * (servers > 1)}, {workers} worker{'s' * (workers > 1)}"


def by_round(results: Results, key: str, shape: Shape, figure: str = "ms_p50") -> dict[int, float]:
    return {run["round"]: run[figure] for run in results["runs"]
            if run["key"] == key and (run["servers"], run["workers"]) == shape and run.get(figure)}


def times(results: Results, key: str, shape: Shape) -> Spread | None:
    """The median iteration of each round, in ms."""
    return spread(list(by_round(results, key, shape).values()))


def ratio(results: Results, peer: str, ours: str, shape: Shape) -> Spread | None:
    """How many times as long as ours the peer took. Taken round by round, because the two ran one after the other: what
    else the machine did then slowed both."""
    a, b = by_round(results, peer, shape), by_round(results, ours, shape)
    return spread([a[i] / b[i] for i in sorted(a.keys() & b.keys())])


LIMITS = {"limit_add_ms": "an addition in place on one core", "limit_add2_ms": "on two cores",
          "limit_memcpy_ms": "a copy", "limit_socket_ms": "both ways through a plain socket"}


def limits(results: Results) -> str:
    """What the same bytes cost at least on this machine, one server and one worker, by the word of pscloud."""
    found = {name: spread([run[name] for run in results["runs"]
                           if run.get(name) and (run["servers"], run["workers"]) == (1, 1)]) for name in LIMITS}
    return ", ".join(f"{LIMITS[name]} {number(value.median)} ms" for name, value in found.items() if value)


def add_ms(results: Results, shape: Shape) -> float | None:
    """The additions alone, of all workers, in place, on as many cores as there are servers."""
    value = spread([run["limit_add_ms" if shape[0] == 1 else "limit_add2_ms"] for run in results["runs"]
                    if run.get("limit_add_ms") and (run["servers"], run["workers"]) == shape])
    return value.median if value else None


def short(label: str) -> str:
    return label.removeprefix("pscloud, ")


def number(value: float) -> str:
    """Three digits: 9.81, 28.3, 131."""
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def cell(value: Spread | None, rounds: int, unit: str = "") -> str:
    if value is None:
        return "failed"
    some = "" if value.count == rounds else f", {value.count} of {rounds} rounds"
    return f"{number(value.median)}{unit} ({number(value.low)} to {number(value.high)}{some})"


def verdict(ratios: dict[str, Spread | None]) -> str:
    """Names each way of ours that the peer beats, and each where the rounds do not agree."""
    known = {label: value for label, value in ratios.items() if value is not None}
    if not known:
        return "not compared"
    lost = [label for label, value in known.items() if value.median < 1]
    unclear = [label for label, value in known.items() if value.median >= 1 > value.low]
    missing = [label for label in ratios if label not in known]
    said = [f"**pscloud loses: {', '.join(lost)}**"] if lost else [] if unclear else ["pscloud wins"]
    said += [f"unclear: {', '.join(unclear)}"] * bool(unclear) + [f"not measured: {', '.join(missing)}"] * bool(missing)
    return "; ".join(said)


def rows(lines: list[list[str]]) -> list[str]:
    head, *rest = [f"| {' | '.join(line)} |" for line in lines]
    return [head, "|" + " --- |" * len(lines[0]), *rest]


def markdown(results: Results) -> str:
    conditions, systems = results["conditions"], results["systems"]
    rounds, all_shapes = conditions["rounds"], shapes(results)
    ours, peers = [s for s in systems if s["ours"]], [s for s in systems if not s["ours"]]
    lines = [f"Milliseconds of an iteration over {conditions['size_mb']:g} MB, rounds: {rounds}. Of each round the "
             f"median of {conditions['iters']} iterations; of these the median (the lowest to the highest).", ""]
    lines += rows([["", *map(shape_name, all_shapes)]] + [
        [system["label"], *(cell(times(results, system["key"], shape), rounds) for shape in all_shapes)]
        for system in systems])
    lines += ["", "How many times as long as pscloud each peer takes:", ""]
    ratio_rows = [["", "", *(short(system["label"]) for system in ours), ""]]
    for shape in all_shapes:
        for peer in peers:
            found = {short(system["label"]): ratio(results, peer["key"], system["key"], shape) for system in ours}
            cells = ["-" if value is None else cell(value, value.count, "×") for value in found.values()]
            ratio_rows.append([shape_name(shape), peer["label"], *cells, verdict(found)])
    lines += rows(ratio_rows)
    if limits(results):
        lines += ["", f"What the same bytes cost at least on this machine: {limits(results)}."]
    lines += failures(results)
    notes = {run["key"]: f"{run['version']} ({run['note']})" if run.get("note") else run["version"]
             for run in results["runs"] if run.get("version")}
    told = "; ".join(f"{system['label']} {notes[system['key']]}" for system in peers if system["key"] in notes)
    lines += ["", f"{conditions['date']}, {conditions['cpu']}, {conditions['cores']} cores, "
              f"{conditions['memory_gb']} GB, Linux {conditions['kernel']}; load at the start {conditions['load']}. "
              f"{conditions['ours']}; {told}. By `{conditions['command']}`."]
    return "\n".join(lines) + "\n"


def failures(results: Results) -> list[str]:
    """Each way of failing once, with the shapes and the number of runs that it met."""
    met: dict[tuple[str, str], list[Shape]] = {}
    for system in results["systems"]:
        for run in results["runs"]:
            if run["key"] == system["key"] and "error" in run:
                met.setdefault((system["label"], run["error"]), []).append((run["servers"], run["workers"]))
    told = [f"- {label} ({'; '.join(shape_name(shape) for shape in sorted(set(where)))}; runs: {len(where)}): {error}"
            for (label, error), where in met.items()]
    return ["", "What failed:", "", *told] if told else []


def put_between(page: str, begin: str, end: str, text: str) -> str:
    """The page with `text` in place of what stood between the two lines."""
    before, found, rest = page.partition(begin + "\n")
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise ValueError(f"the page has no '{begin}' with '{end}' after it")
    return f"{before}{begin}\n{text}{end}{after}"
