"""secp256k1 by the book, in whole numbers: affine additions, double and add, and ElligatorSwift's map.

The map is XSwiftEC as BIP 324 writes it down: from two field elements to an abscissa.
"""

from __future__ import annotations

P = 2**256 - 2**32 - 977
G = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)
Point = tuple[int, int] | None  # None is zero


def add(one: Point, other: Point) -> Point:
    """The sum of two points."""
    if one is None or other is None:
        return other if one is None else one
    (x1, y1), (x2, y2) = one, other
    if x1 == x2 and (y1 + y2) % P == 0:
        return None
    slope = 3 * x1 * x1 * pow(2 * y1, -1, P) if one == other else (y2 - y1) * pow(x2 - x1, -1, P)
    x = (slope * slope - x1 - x2) % P
    return x, (slope * (x1 - x) - y1) % P


def multiply(point: Point, scalar: int) -> Point:
    """A multiple of a point."""
    total: Point = None
    while scalar:
        if scalar & 1:
            total = add(total, point)
        point, scalar = add(point, point), scalar >> 1
    return total


def root(square: int) -> int | None:
    """A square root, if there is one."""
    found = pow(square, (P + 1) // 4, P)
    return found if found * found % P == square % P else None


def lift(x: int, odd: int) -> tuple[int, int]:
    """The point with this abscissa and parity."""
    y = root(x**3 + 7)
    if y is None:
        raise ValueError("no point has this abscissa")
    return x, y if y % 2 == odd else P - y


def swift(data: bytes) -> tuple[int, int]:
    """The point that 64 bytes stand for."""
    u, t = (int.from_bytes(data[k : k + 32], "big") % P for k in (0, 32))
    odd = t % 2
    u, t = u or 1, t or 1
    if (u**3 + t**2 + 7) % P == 0:
        t = 2 * t % P
    root_of_minus_3 = root(-3) or 0
    big_x = (u**3 + 7 - t**2) * pow(2 * t, -1, P) % P
    big_y = (big_x + t) * pow(root_of_minus_3 * u, -1, P) % P
    ratio = big_x * pow(big_y, -1, P) % P
    half = pow(2, -1, P)
    for x in (u + 4 * big_y**2, (-ratio - u) * half, (ratio - u) * half):
        if root(x**3 + 7) is not None:
            return lift(x % P, odd)
    raise ValueError("one of the three is always an abscissa")


def pack(point: Point) -> bytes:
    """A point in 65 bytes."""
    if point is None:
        raise ValueError("zero has no bytes")
    return b"\x04" + point[0].to_bytes(32, "big") + point[1].to_bytes(32, "big")
