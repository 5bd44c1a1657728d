"""The papers' tables and figures, ours beside theirs, and what the parts of Colonnade cost on this machine.

`colonnade bench NAME` runs one of `BENCHES`; each is a module with run(quick, out, say). The programs in
`micro` are run by themselves: `python -m colonnade_bench.micro.wires`.
"""

BENCHES = {
    "asyrevel": "colonnade_bench.asyrevel.asyrevel",
    "asysqn": "colonnade_bench.linear.asysqn",
    "czofo": "colonnade_bench.czofo.czofo",
    "defaults": "colonnade_bench.defaults.defaults",
    "engines": "colonnade_bench.engines",
    "faults": "colonnade_bench.faults.faults",
    "fdskl": "colonnade_bench.kernel.fdskl",
    "large": "colonnade_bench.large",
    "peers": "colonnade_bench.peers.peers",
    "soak": "colonnade_bench.deploy.soak",
    "theorems": "colonnade_bench.theorems",
    "trees": "colonnade_bench.trees.trees",
    "vfb2": "colonnade_bench.linear.vfb2",
}
