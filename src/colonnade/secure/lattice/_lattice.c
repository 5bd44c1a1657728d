/* Polynomials modulo primes below 2^50 and X^N + 1, for arithmetic.py; portable.py has the same in NumPy.
 *
 * What takes the time, transforms and products, is there for three kinds of processor: scalar.h, avx2.h, ifma.h. The
 * caller names the kind (`way`); `ways` says which this machine has. No branch and no index depends on a number of an
 * array, but in `uniform`, where what is refused says nothing about what is kept.
 */
#include "../../buffers.h"
#include <stdlib.h>

#include "modulus.h"

typedef struct {
    const word *times, *by_52, *by_64; /* powers of the root, and floor(power 2^52 / p), floor(power 2^64 / p) */
    const double *as_double, *ratio;   /* the power, and power / p */
} Table;

typedef struct {
    const word *a; /* [parts, terms, degree] */
    Py_ssize_t parts, terms, a_part, a_term;
    const word *b; /* a block of slots of the j-th of four outputs: group, term and j so many words apart */
    Py_ssize_t b_block, b_group, b_term, b_one;
    word *out; /* [parts, outputs, degree] */
    Py_ssize_t out_part, outputs, degree;
    int add;    /* to what is there, or write */
    word *room; /* [terms, parts, slots of a block] */
} Products;

#include "scalar.h"
#if defined(__x86_64__) && defined(__GNUC__)
#define VECTORS 1
#include <immintrin.h>
#include "avx2.h"
#include "ifma.h"
#else
#define VECTORS 0
#endif

enum { SCALAR, WITH_AVX2, WITH_IFMA, WAYS };
static const char *const NAMES[WAYS] = {"scalar", "avx2", "avx512ifma"};

static int can(int way)
{
#if VECTORS
    if (way == WITH_AVX2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (way == WITH_IFMA)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512ifma");
#endif
    return way == SCALAR;
}

/* Numbers given beside the arrays: 0 and an exception if one is none. */
static int numbers(PyObject *const *arguments, int count, unsigned long long *values)
{
    for (int k = 0; k < count; k++) {
        values[k] = PyLong_AsUnsignedLongLong(arguments[k]);
        if (PyErr_Occurred())
            return 0;
    }
    return 1;
}

static int words_in(const Py_buffer *given, int count)
{
    for (int k = 0; k < count; k++)
        if (given[k].itemsize != sizeof(word) || (uintptr_t)given[k].buf % sizeof(word))
            return 0;
    return 1;
}

static int is_modulus(unsigned long long p) { return p > 1 && p >> PRIME_BITS == 0; }

static Py_ssize_t length(const Py_buffer *given) { return given->len / (Py_ssize_t)sizeof(word); }

#define NEEDS(due, text)                               \
    if (count != (due)) {                              \
        PyErr_SetString(PyExc_TypeError, text);        \
        return NULL;                                   \
    }

/* ---- transforms and products ---- */

static PyObject *transform(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    static const int flags[] = {WRITE, READ};
    Py_buffer given[2];
    unsigned long long n[4];
    (void)self;
    NEEDS(6, "transform needs two arrays and four numbers")
    if (!numbers(arguments + 2, 4, n) || !hold(given, arguments, flags, 2))
        return NULL;
    unsigned long long p = n[0], scale = n[1], inverse = n[2], way = n[3];
    Py_ssize_t degree = given[0].ndim == 2 ? given[0].shape[1] : 0, rows = degree ? given[0].shape[0] : 0;
    const char *wrong = NULL;
    if (given[0].ndim != 2 || given[1].ndim != 3 || !words_in(given, 2) || given[1].shape[0] != 2 ||
        given[1].shape[1] != 5 || given[1].shape[2] != degree || degree < 16 || (degree & (degree - 1)))
        wrong = "the shapes do not fit each other";
    else if (!is_modulus(p) || scale >= p || inverse > 1)
        wrong = "no such modulus";
    else if (way >= WAYS || !can((int)way))
        wrong = "this processor has no such way";
    if (wrong == NULL) {
        const word *rows_of = (const word *)given[1].buf + inverse * 5 * (word)degree;
        Table table = {rows_of, rows_of + degree, rows_of + 2 * degree, (const double *)(rows_of + 3 * degree),
                       (const double *)(rows_of + 4 * degree)};
        Modulus m = modulus_of(p);
        word *x = given[0].buf;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t row = 0; row < rows; row++, x += degree) {
#if VECTORS
            if (way == WITH_IFMA)
                ifma_transform(x, degree, &table, &m, scale, (int)inverse);
            else if (way == WITH_AVX2)
                avx2_transform(x, degree, &table, &m, scale, (int)inverse);
            else
#endif
                scalar_transform(x, degree, &table, &m, scale, (int)inverse);
        }
        Py_END_ALLOW_THREADS
    }
    release(given, 2);
    return nothing_or(wrong);
}

/* whether b has all words that the strides reach */
static int reaches(const Products *t, Py_ssize_t words)
{
    const Py_ssize_t most = (Py_ssize_t)1 << 40;
    if (t->b_block < 0 || t->b_group < 0 || t->b_term < 0 || t->b_one < 0 || t->b_block > most || t->b_group > most ||
        t->b_term > most || t->b_one > most)
        return 0;
    wide groups = (wide)(t->outputs - 1) / WIDTH, rest = (wide)(t->outputs - 1) % WIDTH;
    wide of_last = groups * (wide)t->b_group + rest * (wide)t->b_one;
    wide of_full = groups ? (groups - 1) * (wide)t->b_group + (WIDTH - 1) * (wide)t->b_one : 0;
    wide last = (wide)(t->degree / LANES_OF_A_BLOCK - 1) * (wide)t->b_block + (wide)(t->terms - 1) * (wide)t->b_term +
                (of_last > of_full ? of_last : of_full) + LANES_OF_A_BLOCK - 1;
    return last < (wide)words;
}

static PyObject *products(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    static const int flags[] = {READ, READ, WRITE};
    Py_buffer given[3];
    unsigned long long n[7];
    (void)self;
    NEEDS(10, "products needs three arrays and seven numbers")
    if (!numbers(arguments + 3, 7, n) || !hold(given, arguments, flags, 3))
        return NULL;
    Products t = {.a = given[0].buf, .b = given[1].buf, .out = given[2].buf, .b_block = (Py_ssize_t)n[0],
                  .b_group = (Py_ssize_t)n[1], .b_term = (Py_ssize_t)n[2], .b_one = (Py_ssize_t)n[3],
                  .add = n[5] != 0};
    unsigned long long p = n[4], way = n[6];
    const char *wrong = NULL;
    if (given[0].ndim != 3 || given[2].ndim != 3 || !words_in(given, 3) || given[0].shape[0] != given[2].shape[0] ||
        given[0].shape[2] != given[2].shape[2] || given[0].shape[0] < 1 || given[0].shape[0] > 2)
        wrong = "the shapes do not fit each other";
    else if (!is_modulus(p))
        wrong = "no such modulus";
    else if (way >= WAYS || !can((int)way))
        wrong = "this processor has no such way";
    if (wrong == NULL) {
        t.parts = given[0].shape[0];
        t.terms = given[0].shape[1];
        t.degree = given[0].shape[2];
        t.outputs = given[2].shape[1];
        t.a_term = t.degree;
        t.a_part = t.terms * t.degree;
        t.out_part = t.outputs * t.degree;
        if (t.terms < 1 || t.outputs < 1 || t.degree < LANES_OF_A_BLOCK || t.degree % LANES_OF_A_BLOCK)
            wrong = "there is nothing to multiply";
        else if (!reaches(&t, length(&given[1])))
            wrong = "the factors end before the products do";
        else if ((t.room = malloc((size_t)(t.terms * t.parts * LANES_OF_A_BLOCK) * sizeof(word))) == NULL)
            wrong = "there is no memory for a block";
    }
    if (wrong == NULL) {
        Modulus m = modulus_of(p);
        Py_BEGIN_ALLOW_THREADS
#if VECTORS
        if (way == WITH_IFMA)
            ifma_multiply(&t, &m);
        else if (way == WITH_AVX2)
            avx2_multiply(&t, &m);
        else
#endif
            scalar_multiply(&t, &m);
        Py_END_ALLOW_THREADS
    }
    free(t.room);
    release(given, 3);
    return nothing_or(wrong);
}

/* ---- random numbers from words of a stream ---- */

static PyObject *uniform(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    static const int flags[] = {READ, WRITE};
    Py_buffer given[2];
    unsigned long long p;
    (void)self;
    NEEDS(3, "uniform needs two arrays and a number")
    if (!numbers(arguments + 2, 1, &p) || !hold(given, arguments, flags, 2))
        return NULL;
    Py_ssize_t found = 0, all = length(&given[1]), from = length(&given[0]);
    if (!words_in(given, 2) || !is_modulus(p)) {
        release(given, 2);
        return nothing_or("no such modulus");
    }
    const word *words = given[0].buf, mask = ((word)1 << (64 - __builtin_clzll(p - 1))) - 1;
    word *out = given[1].buf;
    for (Py_ssize_t k = 0; k < from && found < all; k++) {
        word x = words[k] & mask;
        out[found] = x;
        found += x < p;
    }
    release(given, 2);
    return PyLong_FromSsize_t(found);
}

INLINE word ones_in(word x) /* of 21 bits or fewer */
{
    x -= x >> 1 & 0x155555;
    x = (x & 0x133333) + (x >> 2 & 0x133333);
    x = (x + (x >> 4)) & 0x0F0F0F;
    return (x + (x >> 8) + (x >> 16)) & 0xFF;
}

INLINE word modulo(int64_t small, word p) { return (word)small + (p & (word)(small >> 63)); }

/* the bits of a word that are set, less others, 21 each: mean 0, variance 10.5 */
INLINE int64_t centred(word x)
{
    return (int64_t)ones_in(x & 0x1FFFFF) - (int64_t)ones_in(x >> 21 & 0x1FFFFF);
}

EVERY_PROCESSOR static void add_errors(const word *words, word *out, Py_ssize_t count, word p)
{
    for (Py_ssize_t k = 0; k < count; k++)
        out[k] = below(out[k] + modulo(centred(words[k]), p), p);
}

EVERY_PROCESSOR static void write_ternary(const word *words, word *out, Py_ssize_t count, word p)
{
    for (Py_ssize_t k = 0; k < count; k++) {
        word low = (words[k] & 0xFFFFFFFF) * 3 >> 32;
        out[k] = modulo((int64_t)(((words[k] >> 32) * 3 + low) >> 32) - 1, p); /* floor(3 word / 2^64) - 1 */
    }
}

typedef void Write(const word *words, word *out, Py_ssize_t count, word p);

static PyObject *written(PyObject *const *arguments, Py_ssize_t count, Write *write)
{
    static const int flags[] = {READ, WRITE};
    Py_buffer given[2];
    unsigned long long p;
    NEEDS(3, "two arrays and a number are due")
    if (!numbers(arguments + 2, 1, &p) || !hold(given, arguments, flags, 2))
        return NULL;
    int fits = words_in(given, 2) && given[0].len == given[1].len && is_modulus(p);
    if (fits)
        write(given[0].buf, given[1].buf, length(&given[0]), p);
    release(given, 2);
    return nothing_or(fits ? NULL : "the shapes do not fit each other");
}

static PyObject *errors(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self;
    return written(arguments, count, add_errors);
}

static PyObject *ternary(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self;
    return written(arguments, count, write_ternary);
}

/* three whole numbers of so many bits, each a low and a high word, less their mean */
static void add_flood(const word *words, word *out, Py_ssize_t count, const Modulus *m, word low, word high, word mean)
{
    for (Py_ssize_t k = 0; k < count; k++) {
        word sum = m->p - mean;
        for (int j = 0; j < 3; j++, words += 2)
            sum = below(sum + remainder_of((wide)(words[1] & high) << 64 | (words[0] & low), m), m->p);
        out[k] = below(out[k] + below(sum, m->p), m->p);
    }
}

static PyObject *flood(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    static const int flags[] = {READ, WRITE};
    Py_buffer given[2];
    unsigned long long n[2];
    (void)self;
    NEEDS(4, "flood needs two arrays and two numbers")
    if (!numbers(arguments + 2, 2, n) || !hold(given, arguments, flags, 2))
        return NULL;
    int fits = words_in(given, 2) && given[0].len == 6 * given[1].len && is_modulus(n[0]) && n[1] >= 1 && n[1] < 128;
    if (fits) {
        Modulus m = modulus_of(n[0]);
        word mean = (word)(((((wide)1 << (n[1] - 1)) % m.p) * 3) % m.p);
        wide most = ((wide)1 << n[1]) - 1;
        add_flood(given[0].buf, given[1].buf, length(&given[1]), &m, (word)most, (word)(most >> 64), mean);
    }
    release(given, 2);
    return nothing_or(fits ? NULL : "the shapes do not fit each other");
}

/* ---- from one modulus to another ---- */

/* out + round(q m / t) modulo p, a divisor of q: (h - (q m + h mod t)) / t modulo p, h = floor(t / 2) */
static void add_scaled(const word *messages, word *out, Py_ssize_t count, word p, word t, Factor rest, Factor inverse)
{
    Modulus m = modulus_of(p);
    word half = t / 2, top = product(half, m.one, p) + p;
    for (Py_ssize_t k = 0; k < count; k++) {
        word left = below(product(messages[k], rest, t) + half, t);
        word x = product(below(top - product(left, m.one, p), p), inverse, p);
        out[k] = below(out[k] + x, p);
    }
}

static PyObject *scaled(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    static const int flags[] = {READ, WRITE};
    Py_buffer given[2];
    unsigned long long n[4];
    (void)self;
    NEEDS(6, "scaled needs two arrays and four numbers")
    if (!numbers(arguments + 2, 4, n) || !hold(given, arguments, flags, 2))
        return NULL;
    unsigned long long p = n[0], t = n[1], rest = n[2], inverse = n[3];
    int fits = words_in(given, 2) && given[0].len == given[1].len && is_modulus(p) && is_modulus(t) && rest < t &&
               inverse < p;
    if (fits)
        add_scaled(given[0].buf, given[1].buf, length(&given[0]), p, t, factor_of(rest, t), factor_of(inverse, p));
    release(given, 2);
    return nothing_or(fits ? NULL : "the shapes do not fit each other");
}

/* out becomes (out - x) / dropped modulo p, x being centred modulo the prime that is dropped */
static void drop_prime(const word *x, word *out, Py_ssize_t count, word dropped, word p, Factor inverse)
{
    Modulus m = modulus_of(p);
    word rest = product(dropped, m.one, p), half = dropped / 2;
    for (Py_ssize_t k = 0; k < count; k++) {
        word negative = 0 - ((half - x[k]) >> 63); /* all bits, where x stands for x - dropped */
        word residue = product(x[k], m.one, p) + ((p - rest) & negative);
        out[k] = product(below(out[k] + p - below(residue, p), p), inverse, p);
    }
}

static PyObject *drop(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    static const int flags[] = {READ, WRITE};
    Py_buffer given[2];
    unsigned long long n[3];
    (void)self;
    NEEDS(5, "drop needs two arrays and three numbers")
    if (!numbers(arguments + 2, 3, n) || !hold(given, arguments, flags, 2))
        return NULL;
    int fits = words_in(given, 2) && given[0].len == given[1].len && is_modulus(n[0]) && is_modulus(n[1]) &&
               n[2] < n[1];
    if (fits)
        drop_prime(given[0].buf, given[1].buf, length(&given[0]), n[0], n[1], factor_of(n[2], n[1]));
    release(given, 2);
    return nothing_or(fits ? NULL : "the shapes do not fit each other");
}

/* round(x 2^bits / p) modulo 2^bits, in place: half more than x times floor(2^(bits + 64) / p), less its low word */
static void cut_words(word *x, Py_ssize_t count, word p, int bits)
{
    wide ratio = ((wide)1 << (bits + 64)) / p; /* below 2^64, as bits are fewer than those of p */
    word mask = ((word)1 << bits) - 1;
    for (Py_ssize_t k = 0; k < count; k++)
        x[k] = (word)(((wide)x[k] * (word)ratio + ((wide)1 << 63)) >> 64) & mask;
}

static PyObject *cut(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    static const int flags[] = {WRITE};
    Py_buffer given[1];
    unsigned long long n[2];
    (void)self;
    NEEDS(3, "cut needs an array and two numbers")
    if (!numbers(arguments + 1, 2, n) || !hold(given, arguments, flags, 1))
        return NULL;
    int fits = words_in(given, 1) && is_modulus(n[0]) && n[1] >= 1 && n[1] < PRIME_BITS && n[0] >> n[1];
    if (fits)
        cut_words(given[0].buf, length(given), n[0], (int)n[1]);
    release(given, 1);
    return nothing_or(fits ? NULL : "the shapes do not fit each other");
}

/* out + x inverse 2^64 / p modulo 2^64, up to 3 units too small, for p above 2^49 */
static void add_fractions(const word *x, word *out, Py_ssize_t count, word p, Factor inverse)
{
    word ratio = (word)(((wide)1 << 113) / p);
    for (Py_ssize_t k = 0; k < count; k++)
        out[k] += (word)(((wide)product(x[k], inverse, p) * ratio) >> 49);
}

static PyObject *fraction(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    static const int flags[] = {READ, WRITE};
    Py_buffer given[2];
    unsigned long long n[2];
    (void)self;
    NEEDS(4, "fraction needs two arrays and two numbers")
    if (!numbers(arguments + 2, 2, n) || !hold(given, arguments, flags, 2))
        return NULL;
    int fits = words_in(given, 2) && given[0].len == given[1].len && is_modulus(n[0]) && n[0] >> 49 && n[1] < n[0];
    if (fits)
        add_fractions(given[0].buf, given[1].buf, length(&given[0]), n[0], factor_of(n[1], n[0]));
    release(given, 2);
    return nothing_or(fits ? NULL : "the shapes do not fit each other");
}

/* ---- words of few bits as bytes, lowest first ---- */

static PyObject *pack(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    static const int flags[] = {READ, WRITE};
    Py_buffer given[2];
    unsigned long long bits;
    (void)self;
    NEEDS(3, "pack needs two arrays and a number")
    if (!numbers(arguments + 2, 1, &bits) || !hold(given, arguments, flags, 2))
        return NULL;
    Py_ssize_t words = length(&given[0]);
    int fits = words_in(given, 1) && given[1].itemsize == 1 && bits >= 1 && bits <= 56 && words % 8 == 0 &&
               given[1].len == words / 8 * (Py_ssize_t)bits;
    if (fits) {
        const word *from = given[0].buf;
        unsigned char *to = given[1].buf;
        word held = 0, mask = ((word)1 << bits) - 1;
        unsigned have = 0;
        for (Py_ssize_t k = 0; k < words; k++) {
            held |= (from[k] & mask) << have;
            for (have += (unsigned)bits; have >= 8; have -= 8, held >>= 8)
                *to++ = (unsigned char)held;
        }
    }
    release(given, 2);
    return nothing_or(fits ? NULL : "the shapes do not fit each other");
}

static PyObject *unpack(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    static const int flags[] = {READ, WRITE};
    Py_buffer given[2];
    unsigned long long bits;
    (void)self;
    NEEDS(3, "unpack needs two arrays and a number")
    if (!numbers(arguments + 2, 1, &bits) || !hold(given, arguments, flags, 2))
        return NULL;
    Py_ssize_t words = length(&given[1]);
    int fits = given[1].itemsize == sizeof(word) && given[0].itemsize == 1 && bits >= 1 && bits <= 56 &&
               words % 8 == 0 && given[0].len == words / 8 * (Py_ssize_t)bits;
    if (fits) {
        const unsigned char *from = given[0].buf;
        word *to = given[1].buf, held = 0, mask = ((word)1 << bits) - 1;
        unsigned have = 0;
        for (Py_ssize_t k = 0; k < words; k++) {
            for (; have < bits; have += 8)
                held |= (word)*from++ << have;
            to[k] = held & mask;
            held >>= bits;
            have -= (unsigned)bits;
        }
    }
    release(given, 2);
    return nothing_or(fits ? NULL : "the shapes do not fit each other");
}

static PyObject *ways(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self, (void)arguments;
    NEEDS(0, "ways needs nothing")
    PyObject *found = PyList_New(0);
    for (int way = 0; found != NULL && way < WAYS; way++) {
        PyObject *name = can(way) ? PyUnicode_FromString(NAMES[way]) : NULL;
        if (name != NULL && PyList_Append(found, name) < 0)
            Py_CLEAR(found);
        Py_XDECREF(name);
    }
    return found;
}

#define METHOD(name, text) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, text}

static PyMethodDef methods[] = {
    METHOD(ways, "ways(): the kinds of code that this processor can run, slowest first."),
    METHOD(transform, "transform(x, tables, p, scale, inverse, way): transforms every row in place."),
    METHOD(products, "products(a, b, out, block, group, term, one, p, add, way): sums of products of slots."),
    METHOD(uniform, "uniform(words, out, p): writes numbers below p and says how many there were."),
    METHOD(errors, "errors(words, out, p): adds centred binomial numbers modulo p."),
    METHOD(ternary, "ternary(words, out, p): writes -1, 0 or 1 modulo p."),
    METHOD(flood, "flood(words, out, p, bits): adds sums of three uniform numbers, less their mean."),
    METHOD(scaled, "scaled(messages, out, p, t, rest, inverse): adds round(q m / t) modulo p."),
    METHOD(drop, "drop(x, out, dropped, p, inverse): divides by a prime of the modulus, rounded."),
    METHOD(cut, "cut(x, p, bits): rounds x 2^bits / p in place."),
    METHOD(fraction, "fraction(x, out, p, inverse): adds the part of q that x is in one prime of q, in 2^-64."),
    METHOD(pack, "pack(words, bytes, bits): writes words of few bits side by side."),
    METHOD(unpack, "unpack(bytes, words, bits): reads them."),
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {NO_LOCK {0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_lattice", NULL, 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__lattice(void)
{
    return PyModuleDef_Init(&module);
}
