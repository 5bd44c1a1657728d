/* Calls the arithmetic of _lattice.c on secrets that Valgrind is told are undefined: it then reports every branch and
 * every index that depends on one. With an argument it makes such a branch itself, to show that it is seen.
 */
#include "_lattice.c"
#include <stdio.h>
#include <valgrind/memcheck.h>

enum { N = 64, TERMS = 5, OUTPUTS = 6 };

static word state = 88172645463325252u;

static word next_word(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static void secrets(word *x, Py_ssize_t count, word p)
{
    for (Py_ssize_t k = 0; k < count; k++)
        x[k] = p ? next_word() % p : next_word();
    VALGRIND_MAKE_MEM_UNDEFINED(x, (size_t)count * sizeof *x);
}

int main(int count, char **arguments)
{
    static word x[N], out[2 * OUTPUTS * N], a[2 * TERMS * N], b[OUTPUTS * TERMS * N], words[6 * N], rows[3 * N];
    static double doubles[2 * N];
    static word room[TERMS * 2 * LANES_OF_A_BLOCK];
    const word p = 1125899906826241, t = 17179754497;
    Modulus m = modulus_of(p);
    (void)arguments;
    for (int k = 0; k < N; k++) { /* any constants do: what is looked for is not the result */
        rows[k] = next_word() % p;
        rows[N + k] = (word)(((wide)rows[k] << 52) / p);
        rows[2 * N + k] = factor_of(rows[k], p).quotient;
        doubles[k] = (double)rows[k];
        doubles[N + k] = (double)rows[k] / (double)p;
    }
    Table table = {rows, rows + N, rows + 2 * N, doubles, doubles + N};
    Products task = {.a = a, .parts = 2, .terms = TERMS, .a_part = TERMS * N, .a_term = N, .b = b, .b_block = 8,
                     .b_group = 4 * TERMS * N, .b_term = N, .b_one = TERMS * N, .out = out, .out_part = OUTPUTS * N,
                     .outputs = OUTPUTS, .degree = N, .add = 1, .room = room};
    for (int way = SCALAR; way <= WITH_AVX2; way++) /* Valgrind knows no AVX-512 */
        for (int inverse = 0; inverse < 2; inverse++) {
            if (!can(way))
                continue;
            secrets(x, N, p);
            secrets(a, 2 * TERMS * N, p);
            secrets(b, OUTPUTS * TERMS * N, p);
            secrets(out, 2 * OUTPUTS * N, p);
#if VECTORS
            if (way == WITH_AVX2) {
                avx2_transform(x, N, &table, &m, 5, inverse);
                avx2_multiply(&task, &m);
                continue;
            }
#endif
            scalar_transform(x, N, &table, &m, 5, inverse);
            scalar_multiply(&task, &m);
        }
    secrets(words, 6 * N, 0);
    secrets(x, N, p);
    add_errors(words, x, N, p);
    write_ternary(words, x, N, p);
    add_flood(words, x, N, &m, ~(word)0, 1, 3);
    secrets(a, N, t);
    add_scaled(a, x, N, p, t, factor_of(p % t, t), factor_of(12345, p));
    secrets(a, N, p);
    drop_prime(a, x, N, p - 4096, p, factor_of(12345, p));
    secrets(a, N, p);
    add_fractions(a, words, N, p, factor_of(12345, p));
    cut_words(x, N, p, 32);
    if (count > 1 && x[0] == 7)
        puts("seven");
    return 0;
}
