/* The negacyclic number-theoretic transform and products in its domain, for one kind of processor.
 *
 * This file is read once for each kind: the file that reads it has said what a vector V of LANES numbers is, and how it
 * is loaded, multiplied by a constant (`times`) and kept small (`shrink`). NAMED(f) is the name of f for this kind.
 * Every kind ends with the same numbers in [0, p); between the layers numbers are only as small as they must be.
 *
 * Forward: Cooley and Tukey, from natural to bit-reversed order; inverse: Gentleman and Sande, back. The powers of the
 * 2N-th root are in bit-reversed order, so that group i of a layer of m groups finds its own at m + i.
 */
FUNCTION void NAMED(forward_pair)(V *x, V *y, C c, const Kind *k)
{
    V high = NAMED(times)(*y, c, k), low = NAMED(shrink)(*x, k);
    *x = NAMED(plus)(low, high);
    *y = NAMED(minus)(low, high, k);
}

FUNCTION void NAMED(inverse_pair)(V *x, V *y, C c, const Kind *k)
{
    V low = *x, high = *y;
    *x = NAMED(shrink)(NAMED(plus)(low, high), k);
    *y = NAMED(times)(NAMED(minus)(low, high, k), c, k);
}

/* a layer whose pairs lie at least a vector apart */
FUNCTION void NAMED(wide_layer)(word *x, Py_ssize_t groups, Py_ssize_t apart, const Table *table, const Kind *k,
                                int inverse)
{
    for (Py_ssize_t i = 0; i < groups; i++) {
        C c = NAMED(same)(table, groups + i);
        word *low = x + 2 * i * apart, *high = low + apart;
        for (Py_ssize_t j = 0; j < apart; j += LANES) {
            V a = NAMED(load)(low + j), b = NAMED(load)(high + j);
            if (inverse)
                NAMED(inverse_pair)(&a, &b, c, k);
            else
                NAMED(forward_pair)(&a, &b, c, k);
            NAMED(store)(low + j, a);
            NAMED(store)(high + j, b);
        }
    }
}

PATH static void NAMED(transform)(word *x, Py_ssize_t degree, const Table *table, const Modulus *m, word scale,
                                  int inverse)
{
    Kind kind = NAMED(kind_of)(m), *k = &kind;
    NAMED(enter)(x, degree);
    if (!inverse) {
        Py_ssize_t apart = degree / 2;
        for (; apart >= LANES; apart /= 2)
            NAMED(wide_layer)(x, degree / 2 / apart, apart, table, k, 0);
        NAMED(narrow_layers)(x, degree, table, k, 0);
        NAMED(leave)(x, degree, k);
        return;
    }
    NAMED(narrow_layers)(x, degree, table, k, 1);
    for (Py_ssize_t apart = LANES; apart < degree; apart *= 2)
        NAMED(wide_layer)(x, degree / 2 / apart, apart, table, k, 1);
    C c = NAMED(constant)(scale, m);
    for (Py_ssize_t j = 0; j < degree; j += LANES)
        NAMED(store)(x + j, NAMED(times)(NAMED(load)(x + j), c, k));
    NAMED(leave)(x, degree, k);
}

/* sums over all terms of a block of slots times up to four others */
FUNCTION void NAMED(sums)(const Products *task, const word *from, word *to, int parts, int width, const Modulus *m,
                          const Kind *k)
{
    for (int lane = 0; lane < LANES_OF_A_BLOCK; lane += LANES) {
        V total[2][WIDTH];
        for (int part = 0; part < parts; part++)
            for (int j = 0; j < width; j++)
                total[part][j] = NAMED(zero)();
        for (Py_ssize_t start = 0; start < task->terms; start += AT_ONCE) {
            Py_ssize_t end = start + AT_ONCE < task->terms ? start + AT_ONCE : task->terms;
            Sum sum[2][WIDTH];
            memset(sum, 0, sizeof sum);
            for (Py_ssize_t c = start; c < end; c++)
                for (int part = 0; part < parts; part++) {
                    Operand a = NAMED(operand)(task->room + (c * parts + part) * LANES_OF_A_BLOCK + lane);
                    for (int j = 0; j < width; j++)
                        NAMED(add_product)(&sum[part][j], a,
                                           NAMED(operand)(from + c * task->b_term + j * task->b_one + lane));
                }
            for (int part = 0; part < parts; part++)
                for (int j = 0; j < width; j++)
                    total[part][j] = NAMED(shrink)(
                        NAMED(plus)(total[part][j], NAMED(reduced)(&sum[part][j], m, k)), k);
        }
        for (int part = 0; part < parts; part++)
            for (int j = 0; j < width; j++)
                NAMED(put)(to + part * task->out_part + j * task->degree + lane, total[part][j], task->add, k);
    }
}

PATH static void NAMED(multiply)(const Products *task, const Modulus *m)
{
    Kind kind = NAMED(kind_of)(m), *k = &kind;
    for (Py_ssize_t block = 0; block < task->degree / LANES_OF_A_BLOCK; block++) {
        Py_ssize_t slot = block * LANES_OF_A_BLOCK;
        for (Py_ssize_t c = 0; c < task->terms; c++)
            for (Py_ssize_t part = 0; part < task->parts; part++)
                memcpy(task->room + (c * task->parts + part) * LANES_OF_A_BLOCK,
                       task->a + part * task->a_part + c * task->a_term + slot, LANES_OF_A_BLOCK * sizeof(word));
        for (Py_ssize_t first = 0; first < task->outputs; first += WIDTH) {
            const word *from = task->b + block * task->b_block + first / WIDTH * task->b_group;
            word *to = task->out + first * task->degree + slot;
            Py_ssize_t width = task->outputs - first;
            if (width >= WIDTH && task->parts == 2)
                NAMED(sums)(task, from, to, 2, WIDTH, m, k);
            else if (width >= WIDTH)
                NAMED(sums)(task, from, to, 1, WIDTH, m, k);
            else
                for (int j = 0; j < width; j++, from += task->b_one, to += task->degree) {
                    if (task->parts == 2)
                        NAMED(sums)(task, from, to, 2, 1, m, k);
                    else
                        NAMED(sums)(task, from, to, 1, 1, m, k);
                }
        }
    }
}

#undef NAMED
#undef FUNCTION
#undef PATH
#undef LANES
#undef AT_ONCE
#undef V
#undef C
#undef Kind
#undef Sum
#undef Operand
