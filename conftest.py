"""Which modules' examples can be run here: those of an extra only where the extra is installed."""

from __future__ import annotations

from importlib.util import find_spec

EXTRAS = {
    "aiohttp": "src/colonnade/deploy/http/service.py",
    "torch": "src/colonnade/models/network.py",
    "dp_accounting": "src/colonnade/privacy/accountant.py",
}
collect_ignore = [module for extra, module in EXTRAS.items() if find_spec(extra) is None]
