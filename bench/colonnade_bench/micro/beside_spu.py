"""The same job beside SPU, which trains on secret shares (two parties in one process): CPU seconds.

    python -m venv /somewhere && /somewhere/bin/pip install spu
    python -m colonnade_bench.micro.beside_spu --python /somewhere/bin/python [--epochs 10] [--batch 1024]
    ... --protocols SEMI2K CHEETAH --epochs 1 --two

Logistic regression on a9a, plain SGD with batches of the same size and the same step. SPU is nobody's
dependency: it runs under an interpreter of its own, which is given the columns as files. Ours are 8 parties
in the local world, clear, blind, and with scores hidden; SPU hides what the last of these does. With --two
ours are two parties and `lbfgs` as it comes, to its end: encrypted, and with weights that nobody knows.
CHEETAH is SPU's protocol of two parties alone; SEMI2K has words dealt, by a party that is left out here.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from colonnade.job import job_from
from colonnade.run.federate import federate, prepare
from colonnade.run.resolve import compose
from colonnade_bench.micro import two
from colonnade_bench.micro.blind import MODES, trained

SPU = """
import sys, time
import numpy as np, jax, jax.numpy as jnp
import spu, spu.utils.simulation as simulation

X, y = (np.load(f"{sys.argv[1]}/{name}.npy", allow_pickle=False) for name in "Xy")
batch, epochs = int(sys.argv[2]), int(sys.argv[3])
rounds = len(X) // batch
X, y = X[: rounds * batch], y[: rounds * batch]

def train(X, y):
    def step(k, w):
        rows = jax.lax.dynamic_slice(X, (k * batch, 0), (batch, X.shape[1]))
        labels = jax.lax.dynamic_slice(y, (k * batch,), (batch,))
        return w - rows.T @ (jax.nn.sigmoid(rows @ w) - labels) / batch
    epoch = lambda e, w: jax.lax.fori_loop(0, rounds, step, w)
    return jax.lax.fori_loop(0, epochs, epoch, jnp.zeros(X.shape[1]))

config = spu.RuntimeConfig(protocol=getattr(spu.ProtocolKind, sys.argv[4]), field=spu.FieldType.FM64)
run = simulation.sim_jax(simulation.Simulator(2, config), train)
before = time.process_time()
w = np.asarray(run(X, y))
print(time.process_time() - before, np.mean((X @ w > 0) == (y > 0.5)))
"""


def write_columns(folder: Path) -> None:
    """All columns of a9a as our parties have them, and the label."""
    data = {"train": "a9a", "parties": 1}
    clear = {"labels": "clear"}
    _, order = prepare(compose(job_from({"algorithm": "vfb-sgd", "data": data, "secure": clear})))
    table = next(iter(order.ready().data.values())).prepare().train
    X = table.X if isinstance(table.X, np.ndarray) else table.X.toarray()
    np.save(folder / "X.npy", X.astype(np.float32))
    np.save(folder / "y.npy", (np.asarray(table.y) > 0).astype(np.float32))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--python", required=True, help="an interpreter that has spu")
    arguments.add_argument("--epochs", type=int, default=10)
    arguments.add_argument("--batch", type=int, default=1024)
    arguments.add_argument("--protocols", nargs="*", default=["SEMI2K"], help="of SPU")
    arguments.add_argument("--two", action="store_true", help="ours: two parties alone, and lbfgs")
    given = arguments.parse_args()
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        write_columns(Path(folder))
        if given.two:
            for mode in ("blind", "never"):
                done = federate(two.job_of("a9a", mode, compare=False))
                accuracy = done.result.metrics["test_accuracy"]
                print(f"lbfgs, {mode:9}{two.cpu_of(done):8.2f} s, test accuracy {accuracy:.4f}", flush=True)
        for mode in () if given.two else MODES:
            terms = {"batch": given.batch, "epochs": given.epochs, "step": 1.0}
            print(f"{mode:16}{trained('a9a', mode, 'local', 8, **terms).cpu:8.2f} s", flush=True)
        for protocol in given.protocols:
            command = [given.python, "-c", SPU, folder, str(given.batch), str(given.epochs), protocol]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            print(
                f"SPU {protocol:12}{float(said[-2]):8.2f} s, training accuracy {float(said[-1]):.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
