/* One number at a time, in 64 and 128 bits: every processor can do this. */
#define NAMED(f) scalar_##f
#define FUNCTION INLINE
#define PATH
#define LANES 1
#define AT_ONCE ((Py_ssize_t)1 << 20)
#define V word
#define C Factor
#define Kind Modulus
#define Sum wide
#define Operand word

INLINE Modulus scalar_kind_of(const Modulus *m) { return *m; }
INLINE word scalar_zero(void) { return 0; }
INLINE word scalar_load(const word *x) { return *x; }
INLINE void scalar_store(word *x, word v) { *x = v; }
INLINE Factor scalar_same(const Table *t, Py_ssize_t i) { return (Factor){t->times[i], t->by_64[i]}; }
INLINE Factor scalar_constant(word c, const Modulus *m) { return factor_of(c, m->p); }
INLINE word scalar_times(word x, Factor c, const Modulus *k) { return lazily(x, c, k->p); }
INLINE word scalar_shrink(word x, const Modulus *k) { return below(x, 2 * k->p); }
INLINE word scalar_plus(word x, word y) { return x + y; }
INLINE word scalar_minus(word x, word y, const Modulus *k) { return x - y + 2 * k->p; }
INLINE word scalar_operand(const word *x) { return *x; }
INLINE void scalar_add_product(wide *sum, word a, word b) { *sum += (wide)a * b; }
INLINE word scalar_reduced(const wide *sum, const Modulus *m, const Modulus *k)
{
    (void)k;
    return remainder_of(*sum, m);
}
INLINE void scalar_put(word *to, word v, int add, const Modulus *k)
{
    word x = below(below(v, 2 * k->p), k->p);
    *to = below(x + (*to & (0 - (word)add)), k->p);
}
INLINE void scalar_enter(word *x, Py_ssize_t degree) { (void)x, (void)degree; }
INLINE void scalar_leave(word *x, Py_ssize_t degree, const Modulus *k)
{
    for (Py_ssize_t j = 0; j < degree; j++)
        x[j] = below(below(x[j], 2 * k->p), k->p);
}
INLINE void scalar_narrow_layers(word *x, Py_ssize_t degree, const Table *table, const Modulus *k, int inverse)
{
    (void)x, (void)degree, (void)table, (void)k, (void)inverse; /* with one lane every layer is a wide one */
}

#include "transform.h"
