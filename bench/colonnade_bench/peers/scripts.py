"""What other programs run: each reads the columns and labels of a folder, and prints what it took."""

from __future__ import annotations

_DATA = """
import json, sys, time
import numpy as np
X, y, X_test, y_test = (np.load(f"{sys.argv[1]}/{name}.npy") for name in ("X", "y", "X_test", "y_test"))
"""
_END = """
print(json.dumps({"processor": spent, "accuracy": float(np.mean(right))}))
"""
_FIT = """
began = time.process_time()
model.fit(X, y)
spent = time.process_time() - began
right = model.predict(X_test) == y_test
"""

LOGISTIC = f"""{_DATA}
from sklearn.linear_model import LogisticRegression
model = LogisticRegression(C=1 / (1e-4 * len(y)), max_iter=1000, tol=1e-6)
{_FIT}{_END}"""

SCIKIT_TREES = f"""{_DATA}
from sklearn.ensemble import HistGradientBoostingClassifier
model = HistGradientBoostingClassifier(
    max_iter=int(sys.argv[2]), learning_rate=float(sys.argv[3]), max_depth=int(sys.argv[4]),
    max_leaf_nodes=None, max_bins=int(sys.argv[5]), l2_regularization=1.0, early_stopping=False,
)
{_FIT}{_END}"""

XGBOOST = f"""{_DATA}
import xgboost
model = xgboost.XGBClassifier(
    n_estimators=int(sys.argv[2]), learning_rate=float(sys.argv[3]), max_depth=int(sys.argv[4]),
    max_bin=int(sys.argv[5]), tree_method="hist", n_jobs=1,
)
{_FIT}{_END}"""

SPU = f"""{_DATA}
import jax, jax.numpy as jnp
import spu, spu.utils.simulation as simulation

batch, epochs, rounds = int(sys.argv[2]), int(sys.argv[3]), len(X) // int(sys.argv[2])
shown, labels = X[: rounds * batch], y[: rounds * batch]

def train(X, y):
    def step(k, w):
        rows = jax.lax.dynamic_slice(X, (k * batch, 0), (batch, X.shape[1]))
        own = jax.lax.dynamic_slice(y, (k * batch,), (batch,))
        return w - rows.T @ (jax.nn.sigmoid(rows @ w) - own) / batch
    epoch = lambda e, w: jax.lax.fori_loop(0, rounds, step, w)
    return jax.lax.fori_loop(0, epochs, epoch, jnp.zeros(X.shape[1]))

config = spu.RuntimeConfig(protocol=spu.ProtocolKind.SEMI2K, field=spu.FieldType.FM64)
run = simulation.sim_jax(simulation.Simulator(2, config), train)
began = time.process_time()
w = np.asarray(run(shown, labels))
spent = time.process_time() - began
right = (X_test @ w > 0) == (y_test > 0.5)
{_END}"""
