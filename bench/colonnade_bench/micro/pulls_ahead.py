"""Time to a sub-optimality of AsySQN by how many batches a party has in flight, with and without latency.

    python -m colonnade_bench.micro.pulls_ahead [--sets phishing uci-credit] [--latencies 0 0.5 2]
        [--batches 64 256 1024]

Virtual time, 8 parties that all hold the label, quasi-Newton on, an update of 1 ms whatever the batch,
forwards for free; latencies are in milliseconds one way.
"""

from __future__ import annotations

import argparse
from itertools import product

from colonnade_bench.linear.trials import PARTIES, problem, train

GAP = 1e-3
FREE = {"us_per_call": 1e3, "ns_per_value": 0.0, "charge_forward": False}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", nargs="+", default=["phishing", "uci-credit"])
    parser.add_argument("--latencies", nargs="+", type=float, default=[0.0, 0.5, 2.0])
    parser.add_argument("--batches", nargs="+", type=int, default=[64, 256, 1024])
    given = parser.parse_args()
    for name, batch, latency in product(given.sets, given.batches, given.latencies):
        network = {**FREE, "latency_ms": latency}
        one = None
        for ahead in (1, 2, 3):
            terms = {"batch": batch, "epochs": 60, "evaluate_every": 1, "ahead": ahead}
            trace = train(
                problem(name), "asysqn-svrg", active=PARTIES, target=GAP, train=terms, network=network
            )
            seconds = trace.time_to(GAP)
            one = seconds if one is None else one
            faster = f"{one / seconds:.2f}" if one and seconds else "-"
            print(
                f"{name}, batch {batch}, latency {latency:g} ms, {ahead} in flight: {seconds} s, {faster} x"
            )


if __name__ == "__main__":
    main()
