/* Eight numbers at a time with AVX-512 IFMA, which gives the lower and the upper 52 bits of a product of 52 bits. */
#define IFMA __attribute__((target("avx512f,avx512dq,avx512ifma")))
#define NAMED(f) ifma_##f
#define FUNCTION IFMA INLINE
#define PATH IFMA
#define LANES 8
#define AT_ONCE 16 /* so many upper halves, each below 2^48, and what the lower ones carry stay below 2^52 */
#define V __m512i
#define C IfmaFactor
#define Kind IfmaKind
#define Sum IfmaSum
#define Operand __m512i

typedef struct {
    __m512i times, quotient; /* c and floor(c 2^52 / p) */
} IfmaFactor;

typedef struct {
    __m512i p, twice, mask;
    IfmaFactor one, carry; /* 1, and 2^52 modulo p */
} IfmaKind;

typedef struct {
    __m512i low, high;
} IfmaSum;

FUNCTION __m512i ifma_all(word x) { return _mm512_set1_epi64((long long)x); }
FUNCTION __m512i ifma_zero(void) { return _mm512_setzero_si512(); }
FUNCTION __m512i ifma_load(const word *x) { return _mm512_loadu_si512(x); }
FUNCTION void ifma_store(word *x, __m512i v) { _mm512_storeu_si512(x, v); }
FUNCTION IfmaFactor ifma_constant(word c, const Modulus *m)
{
    return (IfmaFactor){ifma_all(c), ifma_all((word)(((wide)c << 52) / m->p))};
}
FUNCTION IfmaKind ifma_kind_of(const Modulus *m)
{
    return (IfmaKind){ifma_all(m->p), ifma_all(2 * m->p), ifma_all(((word)1 << 52) - 1), ifma_constant(1, m),
                      ifma_constant(((word)1 << 52) % m->p, m)};
}
FUNCTION IfmaFactor ifma_same(const Table *t, Py_ssize_t i)
{
    return (IfmaFactor){ifma_all(t->times[i]), ifma_all(t->by_52[i])};
}
FUNCTION __m512i ifma_times(__m512i x, IfmaFactor c, const IfmaKind *k) /* x below 2^52 gives [0, 2p) */
{
    __m512i zero = _mm512_setzero_si512(), quotient = _mm512_madd52hi_epu64(zero, x, c.quotient);
    __m512i whole = _mm512_madd52lo_epu64(zero, x, c.times), off = _mm512_madd52lo_epu64(zero, quotient, k->p);
    return _mm512_and_si512(_mm512_sub_epi64(whole, off), k->mask);
}
FUNCTION __m512i ifma_shrink(__m512i x, const IfmaKind *k) /* [0, 4p) to [0, 2p) */
{
    return _mm512_min_epu64(x, _mm512_sub_epi64(x, k->twice));
}
FUNCTION __m512i ifma_canonical(__m512i x, const IfmaKind *k)
{
    x = ifma_shrink(x, k);
    return _mm512_min_epu64(x, _mm512_sub_epi64(x, k->p));
}
FUNCTION __m512i ifma_plus(__m512i x, __m512i y) { return _mm512_add_epi64(x, y); }
FUNCTION __m512i ifma_minus(__m512i x, __m512i y, const IfmaKind *k)
{
    return _mm512_add_epi64(_mm512_sub_epi64(x, y), k->twice);
}
FUNCTION __m512i ifma_operand(const word *x) { return _mm512_loadu_si512(x); }
FUNCTION void ifma_add_product(IfmaSum *sum, __m512i a, __m512i b)
{
    sum->low = _mm512_madd52lo_epu64(sum->low, a, b);
    sum->high = _mm512_madd52hi_epu64(sum->high, a, b);
}
FUNCTION __m512i ifma_reduced(const IfmaSum *sum, const Modulus *m, const IfmaKind *k)
{
    __m512i high = _mm512_add_epi64(sum->high, _mm512_srli_epi64(sum->low, 52));
    __m512i low = ifma_times(_mm512_and_si512(sum->low, k->mask), k->one, k);
    (void)m;
    return ifma_shrink(_mm512_add_epi64(ifma_times(high, k->carry, k), low), k);
}
FUNCTION void ifma_put(word *to, __m512i v, int add, const IfmaKind *k)
{
    v = ifma_canonical(v, k);
    if (add)
        v = ifma_canonical(_mm512_add_epi64(v, ifma_load(to)), k);
    ifma_store(to, v);
}
FUNCTION void ifma_enter(word *x, Py_ssize_t degree) { (void)x, (void)degree; }
FUNCTION void ifma_leave(word *x, Py_ssize_t degree, const IfmaKind *k)
{
    for (Py_ssize_t j = 0; j < degree; j += LANES)
        ifma_store(x + j, ifma_canonical(ifma_load(x + j), k));
}

FUNCTION void ifma_forward_pair(__m512i *x, __m512i *y, IfmaFactor c, const IfmaKind *k);
FUNCTION void ifma_inverse_pair(__m512i *x, __m512i *y, IfmaFactor c, const IfmaKind *k);

#define INDICES(a, b, c, d, e, f, g, h) _mm512_setr_epi64(a, b, c, d, e, f, g, h)

/* a layer whose pairs lie within a vector: of two vectors the lower numbers of all pairs, the upper ones, and back */
FUNCTION void ifma_narrow_layer(__m512i *v, const Table *t, Py_ssize_t first, __m512i spread, __m512i lower,
                                __m512i upper, __m512i back, __m512i rest, const IfmaKind *k, int inverse)
{
    __m512i x = _mm512_permutex2var_epi64(v[0], lower, v[1]), y = _mm512_permutex2var_epi64(v[0], upper, v[1]);
    IfmaFactor c = {_mm512_permutexvar_epi64(spread, ifma_load(t->times + first)),
                    _mm512_permutexvar_epi64(spread, ifma_load(t->by_52 + first))};
    if (inverse)
        ifma_inverse_pair(&x, &y, c, k);
    else
        ifma_forward_pair(&x, &y, c, k);
    v[0] = _mm512_permutex2var_epi64(x, back, y);
    v[1] = _mm512_permutex2var_epi64(x, rest, y);
}

FUNCTION void ifma_narrow_layers(word *x, Py_ssize_t degree, const Table *t, const IfmaKind *k, int inverse)
{
    const __m512i halves = INDICES(0, 1, 2, 3, 8, 9, 10, 11), others = INDICES(4, 5, 6, 7, 12, 13, 14, 15);
    const __m512i by_4 = INDICES(0, 0, 0, 0, 1, 1, 1, 1), by_2 = INDICES(0, 0, 1, 1, 2, 2, 3, 3);
    const __m512i pairs = INDICES(0, 1, 4, 5, 8, 9, 12, 13), other_pairs = INDICES(2, 3, 6, 7, 10, 11, 14, 15);
    const __m512i from_pairs = INDICES(0, 1, 8, 9, 2, 3, 10, 11), from_rest = INDICES(4, 5, 12, 13, 6, 7, 14, 15);
    const __m512i even = INDICES(0, 2, 4, 6, 8, 10, 12, 14), odd = INDICES(1, 3, 5, 7, 9, 11, 13, 15);
    const __m512i by_1 = INDICES(0, 1, 2, 3, 4, 5, 6, 7), zip = INDICES(0, 8, 1, 9, 2, 10, 3, 11);
    const __m512i zip_rest = INDICES(4, 12, 5, 13, 6, 14, 7, 15);
    for (Py_ssize_t j = 0; j < degree; j += 2 * LANES) {
        __m512i v[2] = {ifma_load(x + j), ifma_load(x + j + LANES)};
        Py_ssize_t fours = degree / 8 + j / 8, twos = degree / 4 + j / 4, ones = degree / 2 + j / 2;
        if (!inverse) {
            ifma_narrow_layer(v, t, fours, by_4, halves, others, halves, others, k, 0);
            ifma_narrow_layer(v, t, twos, by_2, pairs, other_pairs, from_pairs, from_rest, k, 0);
            ifma_narrow_layer(v, t, ones, by_1, even, odd, zip, zip_rest, k, 0);
        } else {
            ifma_narrow_layer(v, t, ones, by_1, even, odd, zip, zip_rest, k, 1);
            ifma_narrow_layer(v, t, twos, by_2, pairs, other_pairs, from_pairs, from_rest, k, 1);
            ifma_narrow_layer(v, t, fours, by_4, halves, others, halves, others, k, 1);
        }
        ifma_store(x + j, v[0]);
        ifma_store(x + j + LANES, v[1]);
    }
}

#include "transform.h"
