/* Four numbers at a time with AVX2 and FMA. There is no product of 50 bits there, but doubles have 53: x c = h + l
 * exactly, h the rounded product and l what a fused multiply-add finds missing; less a quotient times p, all of it
 * whole numbers below 2^53. Sums of products are made of halves of 25 bits. Numbers may be negative between layers.
 */
#define AVX2 __attribute__((target("avx2,fma")))
#define NAMED(f) avx2_##f
#define FUNCTION AVX2 INLINE
#define PATH AVX2
#define LANES 4
#define AT_ONCE 3 /* so many products of upper halves, and what the others carry, stay below 2^52 */
#define V __m256d
#define C Avx2Factor
#define Kind Avx2Kind
#define Sum Avx2Sum
#define Operand Avx2Operand

typedef struct {
    __m256d times, ratio; /* c and c / p */
} Avx2Factor;

typedef struct {
    __m256d p, inverse;
    Avx2Factor carry; /* 2^50 modulo p */
} Avx2Kind;

typedef struct {
    __m256i low, high; /* 25 bits each */
} Avx2Operand;

typedef struct {
    __m256i low, middle, high;
} Avx2Sum;

static const double SHIFT = 4503599627370496.0; /* 2^52: a double that large has whole numbers in its lowest bits */
static const word SHIFT_BITS = 0x4330000000000000;

FUNCTION __m256d avx2_double_of(__m256i x) /* of whole numbers below 2^52 */
{
    __m256i shifted = _mm256_or_si256(x, _mm256_set1_epi64x((long long)SHIFT_BITS));
    return _mm256_sub_pd(_mm256_castsi256_pd(shifted), _mm256_set1_pd(SHIFT));
}
FUNCTION __m256i avx2_word_of(__m256d x)
{
    __m256d shifted = _mm256_add_pd(x, _mm256_set1_pd(SHIFT));
    return _mm256_xor_si256(_mm256_castpd_si256(shifted), _mm256_set1_epi64x((long long)SHIFT_BITS));
}
FUNCTION __m256d avx2_zero(void) { return _mm256_setzero_pd(); }
FUNCTION __m256d avx2_load(const word *x)
{
    return _mm256_castsi256_pd(_mm256_loadu_si256((const __m256i *)(const void *)x));
}
FUNCTION void avx2_store(word *x, __m256d v)
{
    _mm256_storeu_si256((__m256i *)(void *)x, _mm256_castpd_si256(v));
}
FUNCTION Avx2Factor avx2_constant(word c, const Modulus *m)
{
    return (Avx2Factor){_mm256_set1_pd((double)c), _mm256_set1_pd((double)c / (double)m->p)};
}
FUNCTION Avx2Kind avx2_kind_of(const Modulus *m)
{
    return (Avx2Kind){_mm256_set1_pd((double)m->p), _mm256_set1_pd(1.0 / (double)m->p),
                      avx2_constant(((word)1 << PRIME_BITS) % m->p, m)};
}
FUNCTION __m256d avx2_spread(const double *x, int lanes) /* the first, or the first two twice, or four */
{
    if (lanes == 4)
        return _mm256_loadu_pd(x);
    return lanes == 1 ? _mm256_set1_pd(x[0]) : _mm256_setr_pd(x[0], x[0], x[1], x[1]);
}
FUNCTION Avx2Factor avx2_factors(const Table *t, Py_ssize_t i, int lanes)
{
    return (Avx2Factor){avx2_spread(t->as_double + i, lanes), avx2_spread(t->ratio + i, lanes)};
}
FUNCTION Avx2Factor avx2_same(const Table *t, Py_ssize_t i) { return avx2_factors(t, i, 1); }
FUNCTION __m256d avx2_rounded(__m256d x) { return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
FUNCTION __m256d avx2_times(__m256d x, Avx2Factor c, const Avx2Kind *k)
{
    __m256d high = _mm256_mul_pd(x, c.times), low = _mm256_fmsub_pd(x, c.times, high);
    __m256d quotient = avx2_rounded(_mm256_mul_pd(x, c.ratio));
    return _mm256_add_pd(_mm256_fnmadd_pd(quotient, k->p, high), low);
}
FUNCTION __m256d avx2_shrink(__m256d x, const Avx2Kind *k)
{
    return _mm256_fnmadd_pd(avx2_rounded(_mm256_mul_pd(x, k->inverse)), k->p, x);
}
FUNCTION __m256d avx2_canonical(__m256d x, const Avx2Kind *k)
{
    __m256d small = avx2_shrink(x, k), negative = _mm256_cmp_pd(small, _mm256_setzero_pd(), _CMP_LT_OQ);
    return _mm256_add_pd(small, _mm256_and_pd(negative, k->p));
}
FUNCTION __m256d avx2_plus(__m256d x, __m256d y) { return _mm256_add_pd(x, y); }
FUNCTION __m256d avx2_minus(__m256d x, __m256d y, const Avx2Kind *k)
{
    (void)k;
    return _mm256_sub_pd(x, y);
}
FUNCTION Avx2Operand avx2_operand(const word *x)
{
    __m256i all = _mm256_loadu_si256((const __m256i *)(const void *)x);
    return (Avx2Operand){_mm256_and_si256(all, _mm256_set1_epi64x((1 << 25) - 1)), _mm256_srli_epi64(all, 25)};
}
FUNCTION void avx2_add_product(Avx2Sum *sum, Avx2Operand a, Avx2Operand b)
{
    __m256i crossed = _mm256_add_epi64(_mm256_mul_epu32(a.low, b.high), _mm256_mul_epu32(a.high, b.low));
    sum->low = _mm256_add_epi64(sum->low, _mm256_mul_epu32(a.low, b.low));
    sum->middle = _mm256_add_epi64(sum->middle, crossed);
    sum->high = _mm256_add_epi64(sum->high, _mm256_mul_epu32(a.high, b.high));
}
FUNCTION __m256d avx2_reduced(const Avx2Sum *sum, const Modulus *m, const Avx2Kind *k)
{
    __m256i mask = _mm256_set1_epi64x((1 << 25) - 1);
    __m256i middle = _mm256_add_epi64(sum->middle, _mm256_srli_epi64(sum->low, 25));
    __m256i high = _mm256_add_epi64(sum->high, _mm256_srli_epi64(middle, 25));
    __m256i low = _mm256_or_si256(_mm256_slli_epi64(_mm256_and_si256(middle, mask), 25), _mm256_and_si256(sum->low, mask));
    (void)m;
    return avx2_shrink(_mm256_add_pd(avx2_times(avx2_double_of(high), k->carry, k), avx2_double_of(low)), k);
}
FUNCTION void avx2_put(word *to, __m256d v, int add, const Avx2Kind *k)
{
    if (add)
        v = _mm256_add_pd(v, avx2_double_of(_mm256_castpd_si256(avx2_load(to))));
    avx2_store(to, _mm256_castsi256_pd(avx2_word_of(avx2_canonical(v, k))));
}
FUNCTION void avx2_enter(word *x, Py_ssize_t degree)
{
    for (Py_ssize_t j = 0; j < degree; j += LANES)
        avx2_store(x + j, avx2_double_of(_mm256_castpd_si256(avx2_load(x + j))));
}
FUNCTION void avx2_leave(word *x, Py_ssize_t degree, const Avx2Kind *k)
{
    for (Py_ssize_t j = 0; j < degree; j += LANES)
        avx2_store(x + j, _mm256_castsi256_pd(avx2_word_of(avx2_canonical(avx2_load(x + j), k))));
}

FUNCTION void avx2_forward_pair(__m256d *x, __m256d *y, Avx2Factor c, const Avx2Kind *k);
FUNCTION void avx2_inverse_pair(__m256d *x, __m256d *y, Avx2Factor c, const Avx2Kind *k);

FUNCTION void avx2_pair(__m256d *x, __m256d *y, Avx2Factor c, const Avx2Kind *k, int inverse)
{
    if (inverse)
        avx2_inverse_pair(x, y, c, k);
    else
        avx2_forward_pair(x, y, c, k);
}

/* the two layers whose pairs lie within a vector */
FUNCTION void avx2_twos(__m256d *v, const Table *t, Py_ssize_t first, const Avx2Kind *k, int inverse)
{
    __m256d x = _mm256_permute2f128_pd(v[0], v[1], 0x20), y = _mm256_permute2f128_pd(v[0], v[1], 0x31);
    avx2_pair(&x, &y, avx2_factors(t, first, 2), k, inverse);
    v[0] = _mm256_permute2f128_pd(x, y, 0x20);
    v[1] = _mm256_permute2f128_pd(x, y, 0x31);
}
FUNCTION void avx2_ones(__m256d *v, const Table *t, Py_ssize_t first, const Avx2Kind *k, int inverse)
{
    /* pairs come out in the order 0, 2, 1, 3: so must the constants */
    __m256d x = _mm256_unpacklo_pd(v[0], v[1]), y = _mm256_unpackhi_pd(v[0], v[1]);
    Avx2Factor c = avx2_factors(t, first, 4);
    c.times = _mm256_permute4x64_pd(c.times, 0xD8);
    c.ratio = _mm256_permute4x64_pd(c.ratio, 0xD8);
    avx2_pair(&x, &y, c, k, inverse);
    v[0] = _mm256_unpacklo_pd(x, y);
    v[1] = _mm256_unpackhi_pd(x, y);
}
FUNCTION void avx2_narrow_layers(word *x, Py_ssize_t degree, const Table *t, const Avx2Kind *k, int inverse)
{
    for (Py_ssize_t j = 0; j < degree; j += 2 * LANES) {
        __m256d v[2] = {avx2_load(x + j), avx2_load(x + j + LANES)};
        Py_ssize_t twos = degree / 4 + j / 4, ones = degree / 2 + j / 2;
        if (inverse)
            avx2_ones(v, t, ones, k, 1);
        avx2_twos(v, t, twos, k, inverse);
        if (!inverse)
            avx2_ones(v, t, ones, k, 0);
        avx2_store(x + j, v[0]);
        avx2_store(x + j + LANES, v[1]);
    }
}

#include "transform.h"
