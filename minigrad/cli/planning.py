"""`minigrad plan`: what a model would need on machines that are not here."""

from __future__ import annotations

import dataclasses
import re
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from .console import as_json, printable, table
from .models import setting_hint
from .parser import Command, Parser, Usage, count, flag_json, usage_errors

if TYPE_CHECKING:
    from ..parallel.planning import Cluster, Forecast

__all__ = ["PLAN"]

SHOWN = 8
SIMULATED = 1024  # ranks
UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def _quantity(text: str) -> float:
    """`128G` -> 128e9."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kMGT]?)", text)
    if not found or not float(found[1]):
        raise ValueError(text)
    return float(found[1]) * UNITS[found[2]]


def _seconds(text: str) -> float:
    """`50us` -> 50e-6."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|ms|us)", text)
    if not found:
        raise ValueError(text)
    return float(found[1]) * {"s": 1.0, "ms": 1e-3, "us": 1e-6}[found[2]]


def _arguments(parser: Parser) -> None:
    parser.hint = setting_hint
    parser.add_argument("model", metavar="NAME[:PRESET]", help="a transformer of `minigrad list`")
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings of the model")
    parser.add_argument("--machines", type=count, default=1, metavar="N", help="how many machines (default: 1)")
    parser.add_argument("--cores", type=count, default=8, metavar="N", help="cores of each (default: 8)")
    parser.add_argument("--threads", type=count, metavar="N", help="cores of a rank (default: all of a machine)")
    parser.add_argument(
        "--memory", type=_quantity, default=16e9, metavar="BYTES", help="of each, as 128G (default: 16G)"
    )
    parser.add_argument(
        "--network", type=_quantity, default=1e10, metavar="BITS", help="a second, as 10G (default: 10G)"
    )
    parser.add_argument(
        "--latency", type=_seconds, default=5e-5, metavar="TIME", help="of a message, as 50us (default: 50us)"
    )
    parser.add_argument("--batch", type=count, default=64, metavar="ROWS", help="texts in a batch (default: 64)")
    parser.add_argument(
        "--scale", action="store_true", help=f"simulate more machines as well, up to {SIMULATED:,} ranks"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="a picture to write, .svg, .png or .pdf")
    flag_json(parser)


def _plan(options: Namespace) -> int:
    from ..parallel.machine_speed import measured_boost, measured_rate
    from ..parallel.planning import Cluster
    from ..zoo.config import parse_overrides
    from ..zoo.planning import fits, plan

    rate = measured_rate()
    size = {
        "network": options.network / 8, "latency": options.latency, "rate": rate, "boost": measured_boost(), "threads": options.threads,
    }  # fmt: skip
    cluster = Cluster(options.machines, options.cores, options.memory, **size)
    with usage_errors():
        settings = parse_overrides(options.settings)
        found = plan(options.model, cluster, options.batch, settings)
    if options.output:
        from ..zoo.plan_picture import plan_picture

        with usage_errors():
            plan_picture(found, [_name(one) for one in found]).write(options.output)
    scaled = []
    machines = 2 * options.machines
    while options.scale and machines * cluster.ranks_inside <= SIMULATED:
        more = dataclasses.replace(found[0].cluster, machines=machines)
        try:
            scaled.append((more, plan(options.model, more, options.batch * machines // options.machines, settings)[0]))
        except MemoryError:
            raise Usage("there is no memory to plan with") from None
        machines *= 2
    if options.json:
        print(as_json({"rate": rate, "layouts": [_told(one, cluster) for one in found]}))
        return 0
    cores = cluster.cores // cluster.ranks_inside
    if options.output:
        print(printable(f"wrote {options.output}"))
    print(printable(f"{options.model} on {cluster.ranks} ranks of {cores} cores; a core does {rate / 1e9:.0f} GFLOP/s"))
    print(table([HEADS, *[_row(one, cluster) for one in found[:SHOWN]]]))
    if len(found) > SHOWN:
        print(f"and {len(found) - SHOWN} more: --json shows all")
    for more, one in scaled:
        print(
            printable(f"{more.ranks} ranks: {_name(one)}, {one.seconds:.3g} s a step, efficiency {one.efficiency:.0%}")
        )
    best = found[0]
    if fits(best, cluster):
        print(printable(f"take: mpiexec -n {cluster.ranks} minigrad train {options.model} {_name(best)}"))
        return 0
    print(printable(f"nothing fits: {best.bytes / 1e9:.1f} GB a rank at least; take more machines or a smaller batch"))
    return 1


HEADS = ("layout", "data", "memory of a rank", "sent in a step", "bubble", "s a step", "computing", "efficiency", "")


def _name(one: Forecast) -> str:
    layout = one.layout
    parts = {"tensor": layout.tensor, "pipeline": layout.pipeline}
    said = [f"{name}={value}" for name, value in parts.items() if value > 1]
    return " ".join([*said, *([f"shard={layout.shard}"] if layout.shard else [])]) or "data parallel"


def _row(one: Forecast, cluster: Cluster) -> tuple[Any, ...]:
    from ..zoo.planning import fits

    return (
        _name(one), one.data, f"{one.bytes / 1e9:.2f} GB", f"{one.sent / 1e9:.2f} GB", f"{one.bubble:.0%}",
        f"{one.seconds:.3g}", f"{one.computing:.3g}", f"{one.efficiency:.0%}", "" if fits(one, cluster) else "no room",
    )  # fmt: skip


def _told(one: Forecast, cluster: Cluster) -> dict[str, Any]:
    from ..zoo.planning import fits

    values = {name: value for name, value in vars(one).items() if name not in ("layout", "cluster")}
    return {"layout": _name(one), **values, "bytes": one.bytes, "fits": fits(one, cluster)}


PLAN = Command(
    "plan how to divide a model among machines",
    "minigrad plan gpt:gpt2-xl --machines 8 --cores 64 --memory 128G --network 10G",
    _arguments,
    _plan,
)
