"""The sizes of both encryptions, and why they hold: security, exact decryption, what a flood lets through.

A ring has N coefficients modulo q, a product of primes below 2^50, and hides numbers modulo t. What cannot
be decrypted, hides too little, or is larger than the homomorphic encryption standard allows, is refused when
it is made. docs/lattice.md derives every bound that is computed here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

from colonnade.errors import SumError
from colonnade.secure.lattice.arithmetic import PRIME_BITS, Modulus, modulus, primes_below

MOST_BITS = {1024: 27, 2048: 54, 4096: 109, 8192: 218, 16384: 438, 32768: 881}
"""Bits of q at the most, by N: the standard's table for 128 bits, ternary keys, errors of deviation 3.2."""

ERROR = 21  # the largest error; their variance is ERROR / 2
LEAST_FLOOD = 48  # bits, of exact sums
FISHER = math.sqrt(3) / 2 * math.acosh(2)  # Fisher's information of a sum of three uniform numbers in [-1, 1]


@dataclass(frozen=True)
class Parameters:
    """A ring: this many coefficients, the primes of q, and the modulus of what is encrypted."""

    degree: int
    primes: tuple[int, ...]
    plain: int

    def __post_init__(self) -> None:
        if self.degree not in MOST_BITS:
            raise SumError(f"the standard's table has no ring of {self.degree} coefficients")
        if len(set(self.primes)) != len(self.primes) or not self.primes:
            raise SumError("a ring needs primes that differ")
        if self.q.bit_length() > (most := MOST_BITS[self.degree]):
            raise SumError(
                f"{self.q.bit_length()} bits of q with {self.degree} coefficients are fewer than 128 bits of "
                f"security: take at most {most}, or more coefficients"
            )
        if not 2 <= self.plain < 2**PRIME_BITS or math.gcd(self.plain, self.q) != 1:
            raise SumError(f"a ring cannot hide numbers modulo {self.plain}")
        _ = self.moduli  # refuses what is no prime of this ring

    @cached_property
    def q(self) -> int:
        """The modulus of a coefficient of a ciphertext."""
        return math.prod(self.primes)

    @cached_property
    def moduli(self) -> tuple[Modulus, ...]:
        """The primes of q with their roots."""
        return tuple(modulus(p, self.degree) for p in self.primes)

    @cached_property
    def zero_noise(self) -> int:
        """What an encryption of zero adds to the noise of a coefficient, at the most: e u + e_0 + e_1 s."""
        return (2 * self.degree + 1) * ERROR

    def chunks(self, rows: int) -> int:
        """Return how many polynomials this many numbers fill."""
        return -(-rows // self.degree)


@dataclass(frozen=True)
class SlotParameters(Parameters):
    """Numbers in slots, which multiply slot by slot and decrypt exactly. Answers are flooded.

    `terms` is how many products an answer sums, at the most; the first `kept` primes remain in an answer.
    """

    terms: int = 16
    kept: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.slots
        if not 1 <= self.kept <= len(self.primes) or self.terms < 1:
            raise SumError("an answer keeps at least one of the primes, and sums at least one product")
        if self.flood_bits < 64:
            raise SumError(
                f"numbers modulo {self.plain} leave no room for a flood of 64 bits in "
                f"{self.q.bit_length()} bits of q: take a smaller modulus or more primes"
            )

    @cached_property
    def slots(self) -> Modulus:
        """The modulus of what is encrypted, with the roots that make slots of coefficients."""
        return modulus(self.plain, self.degree)

    @cached_property
    def product_noise(self) -> int:
        """What products add to a coefficient, at the most: terms x N x (error and rounding) x t / 2."""
        return self.terms * self.degree * (2 * ERROR + 1) * self.plain // 4

    def _off(self, flood_bits: int) -> float:
        """Return how far from a whole number the answer divided by q / t may lie: below 1/2 it decrypts."""
        flood = 3 * 2 ** (flood_bits - 1)
        off: float = (flood + self.product_noise + self.zero_noise + 1) * self.plain / self.q
        left = self.q
        for p in reversed(self.primes[self.kept :]):
            left //= p  # dropping a prime rounds both parts: by 1/2 (1 + N) of what remains
            off += (1 + self.degree) / 2 * self.plain / left
        return off + (self.kept > 1) / 2 * self.plain / self.primes[0]  # decryption rounds once more

    @cached_property
    def flood_bits(self) -> int:
        """Bits of each of the three uniform numbers that make a flood: as many as decrypt for certain."""
        return max((bits for bits in range(1, 127) if self._off(bits) < 0.5), default=0)

    @cached_property
    def off(self) -> float:
        """How far from a whole number an honest answer lies, at the most."""
        return self._off(self.flood_bits)

    def told(self, coefficients: int) -> float:
        """Return the advantage that noise of this many coefficients gives, at the most, to tell inputs apart.

        >>> f"{LEAN.told(12 * 32561):.1e}, {STRICT.told(12 * 32561):.1e}"
        '2.6e-04, 8.5e-14'
        """
        variance: float = self.terms * self.degree * (self.plain / 2) ** 2 * (ERROR / 2 + 1 / 12)
        variance += (2 * self.degree + 1) * ERROR / 2
        return math.sqrt(FISHER * variance * coefficients) * 0.5**self.flood_bits


@dataclass(frozen=True)
class CoefficientParameters(Parameters):
    """Numbers in coefficients, for inner products that need not be exact; answers are words of `cut` bits."""

    cut: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.primes) != 1:
            raise SumError("inner products take one prime")
        most = (self.q // 2 // self.degree).bit_length()  # c_1 s, centred, must stay below q / 2
        if not 1 <= self.cut <= most:
            raise SumError(f"answers have between 1 and {most} bits, not {self.cut}")

    @property
    def unit(self) -> float:
        """How many units of what is encrypted one unit of an answer is."""
        return self.plain * 0.5**self.cut

    def error(self, size: int) -> float:
        """Return how far an opened inner product may be off, |x|_1 of the columns being so large."""
        noise: float = (2 * ERROR + 1) / 2 * size + self.zero_noise
        cutting: float = (0.51 + 0.51 * self.degree) * self.unit
        return float(noise * self.plain / self.q) + cutting

    @property
    def least_noise(self) -> float:
        """The deviation of noise that a part must carry before it is sent back: what hides the key in it.

        The party that cut an answer knows by how much every coefficient was rounded, so an exact part would
        be a linear equation of the key. Eight times its deviation leaves at most 1/89 bit.
        """
        return 8 * math.sqrt(self.degree / 18) * self.unit


@dataclass(frozen=True)
class SumParameters(Parameters):
    """Sums of numbers in coefficients, modulo a power of two: exact, and flooded. Answers are cut.

    `terms` is how many numbers an answer adds, over all of its sums, at the most.
    """

    terms: int = 2**15

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.plain & (self.plain - 1) or any(p.bit_length() < PRIME_BITS for p in self.primes):
            raise SumError(
                f"sums are modulo a power of two, not {self.plain}, by primes of {PRIME_BITS} bits"
            )
        if self.flood_bits < LEAST_FLOOD:
            raise SumError(
                f"sums of {self.terms} numbers modulo {self.plain} leave no room for a flood of "
                f"{LEAST_FLOOD} bits in {self.q.bit_length()} bits of q: take fewer rows"
            )

    @cached_property
    def cut(self) -> int:
        """Bits of a word of an answer: what cutting takes away is a quarter of a unit at the most."""
        return self.plain.bit_length() + self.degree.bit_length() - 1

    def _off(self, flood_bits: int) -> float:
        """Return how far from a whole number a sum times t / q may lie: below 1/2 it decrypts."""
        noise = 3 * 2 ** (flood_bits - 1) + self.terms * (2 * ERROR + 1) // 2 + self.zero_noise + 2
        lost = 0.5 + 3 * len(self.primes) * 2.0 ** (self.cut - 64)  # rounding, and what fractions miss
        off: float = noise * self.plain / self.q + lost * (1 + self.degree) * self.plain / 2**self.cut
        return off

    @cached_property
    def flood_bits(self) -> int:
        """Bits of each of the three uniform numbers that make a flood: as many as decrypt for certain."""
        return max((bits for bits in range(1, 127) if self._off(bits) < 0.5), default=0)

    def told(self, coefficients: int) -> float:
        """Return the advantage that noise of this many sums gives, at the most, to tell inputs apart.

        >>> f"{sum_ring(21, 30_000).told(100 * 47_000):.1e}"
        '4.2e-11'
        """
        variance: float = self.terms * (ERROR / 2 + 1 / 12) + (2 * self.degree + 1) * ERROR / 2
        return math.sqrt(FISHER * variance * coefficients) * 0.5**self.flood_bits


MOST_SUM_BITS = 23


def sum_ring(bits: int, terms: int) -> SumParameters:
    """Return the ring for pairs of sums of this many bits each, for this many numbers an answer."""
    if bits > MOST_SUM_BITS:
        raise SumError(f"two sums of {bits} bits do not fit an answer: {MOST_SUM_BITS} are the most")
    return _sum_ring(bits, 1 << max(terms - 1, 1).bit_length())


@lru_cache
def _sum_ring(bits: int, terms: int) -> SumParameters:
    return SumParameters(4096, primes_below(2**50, 4096, 2), 1 << 2 * bits, terms)


LEAN = SlotParameters(4096, primes_below(2**50, 4096, 2), primes_below(2**34, 4096, 1)[0])
STRICT = SlotParameters(8192, primes_below(2**50, 8192, 3), primes_below(2**43, 8192, 1)[0], kept=2)


@lru_cache
def coefficients_beside(slots: SlotParameters) -> CoefficientParameters:
    """Return the ring for inner products with what slots hold: the same t, answers of about its bits."""
    bits = min(38, max(32, slots.plain.bit_length() - 2))
    return CoefficientParameters(2048, primes_below(2**50, 2048, 1), slots.plain, bits)
