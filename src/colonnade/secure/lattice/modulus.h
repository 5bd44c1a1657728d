/* Arithmetic modulo one prime below 2^50, without a division, a branch or an index that depends on a number.
 *
 * A number times a constant c uses c' = floor(c 2^64 / p), made beforehand (Shoup): x c - floor(x c' / 2^64) p lies in
 * [0, 2p) for every x of 64 bits. A remainder of any x is the product with 1.
 */
#include <stdint.h>

typedef uint64_t word;
typedef unsigned __int128 wide;

enum { PRIME_BITS = 50, LANES_OF_A_BLOCK = 8, WIDTH = 4 }; /* slots in a block, products that are made together */

typedef struct {
    word times, quotient; /* c and c' */
} Factor;

typedef struct {
    word p;
    Factor one, carry; /* 1, and 2^64 modulo p */
} Modulus;

INLINE Factor factor_of(word times, word p)
{
    return (Factor){times, (word)(((wide)times << 64) / p)};
}

static Modulus modulus_of(word p)
{
    return (Modulus){p, factor_of(1, p), factor_of((word)(((wide)1 << 64) % p), p)};
}

INLINE word lazily(word x, Factor c, word p) /* in [0, 2p) */
{
    return x * c.times - (word)((wide)x * c.quotient >> 64) * p;
}

INLINE word below(word x, word p) /* x or x - p, for x in [0, 2p) */
{
    word less = x - p;
    return less + (p & (0 - (less >> 63)));
}

INLINE word product(word x, Factor c, word p)
{
    return below(lazily(x, c, p), p);
}

INLINE word remainder_of(wide x, const Modulus *m)
{
    word high = product((word)(x >> 64), m->carry, m->p), low = product((word)x, m->one, m->p);
    return below(high + low, m->p);
}
