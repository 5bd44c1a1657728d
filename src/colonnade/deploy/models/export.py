"""Write a share for other programs: as JSON or NumPy, or the tensors of a network as safetensors.

None of these can carry code. It stays one share: without the other parties' shares it scores nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from colonnade.arrays import Arrays
from colonnade.conversations.cascade.tensors import HEAD, OWN
from colonnade.deploy.models.stored_shares import StoredShare
from colonnade.disk import drafted
from colonnade.errors import JobError, ShareError

Part = Literal["own", "server"]
VECTOR: dict[Part, str] = {"own": OWN, "server": HEAD}  # the array that holds a part's parameters


def write(share: StoredShare, out: Path, part: Part | None = None) -> str:
    """Write the share in the format of the file's ending, and return what was written, in words."""
    if out.exists():
        raise ShareError(f"{out} exists and is not overwritten")
    what = f"{share.manifest.kind} share of {share.manifest.model} at {share.manifest.party}"
    match out.suffix:
        case ".json":
            with drafted(out) as draft:
                draft.write_bytes(as_json(share))
        case ".npz":
            with drafted(out) as draft:
                np.savez(draft, allow_pickle=False, **share.arrays)
        case ".safetensors":
            chosen = part or ("own" if OWN in share.arrays else "server")
            save_tensors(share, chosen, out)
            return f"{'model' if chosen == 'own' else 'server model'} of the {what}"
        case _:
            raise ShareError(f"{out}: write .json, .npz or .safetensors")
    return what


def as_json(share: StoredShare) -> bytes:
    """Return the share as JSON: what it is, the names of its columns, and every array."""
    plain: dict[str, Any] = {
        "model": share.manifest.model,
        "party": share.manifest.party,
        "kind": share.manifest.kind,
        "columns": list(share.preparation.outputs),
        "preparation": share.manifest.preparation,
        "tensors": share.manifest.tensors,
        "arrays": {name: np.asarray(array).tolist() for name, array in share.arrays.items()},
    }
    return msgspec.json.format(msgspec.json.encode(plain), indent=2)


def tensors_of(share: StoredShare, part: Part) -> Arrays:
    """Return the tensors that the module's own load_state_dict takes, by name: trained ones and all
    others."""
    vector = VECTOR[part]
    layout = share.manifest.tensors.get(vector)
    if layout is None:
        named = ", ".join(part for part, name in VECTOR.items() if name in share.manifest.tensors)
        raise ShareError(
            f"the {part} part of this {share.manifest.kind} share is not a network, so it has no tensors "
            f"with names; {f'--part {named} has' if named else 'write .json or .npz'}"
        )
    sizes = [int(np.prod(shape)) for _, shape in layout]
    pieces = np.split(share.arrays[vector], np.cumsum(sizes)[:-1])
    found = {name: piece.reshape(shape) for (name, shape), piece in zip(layout, pieces, strict=True)}
    beside = {n.removeprefix(f"{vector}."): a for n, a in share.arrays.items() if n.startswith(f"{vector}.")}
    return found | beside


def save_tensors(share: StoredShare, part: Part, out: Path) -> None:
    """Write the tensors of a network as a safetensors file."""
    tensors = tensors_of(share, part)
    try:
        from safetensors.numpy import save_file
    except ImportError as error:
        raise JobError(
            f"{out}: needs safetensors, which is not installed; pip install 'colonnade[torch]'"
        ) from error
    manifest = share.manifest
    about = {"model": manifest.model, "party": manifest.party, "part": part, "job": manifest.digest}
    whole = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    with drafted(out) as draft:
        save_file(whole, draft, metadata=about)
