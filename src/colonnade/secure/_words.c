/* Arithmetic of words modulo 2^64 in one pass over memory: products with rows of a table (words.py), and fixed-point
 * numbers under masks and their totals (ring.py). Both have the same in NumPy; tests/secure/test_words.py and
 * test_ring.py compare the two.
 *
 * Rows lie anywhere in the table, so most of the time would go by waiting for memory: rows that are to come are asked
 * for while others are multiplied. A stretch of rows at a time is written as words into a room near the processor,
 * where every block of columns begins a new vector and ends with zeros: no product has a rest.
 */
#include "../buffers.h"
#include <stdlib.h>

/* eight at once are no quicker where a processor can, and slow where it cannot */
#define OF_FOUR(number) __attribute__((vector_size(4 * sizeof(number)), aligned(sizeof(number)), may_alias))

typedef uint64_t word;
typedef word words OF_FOUR(word);
typedef int64_t longs OF_FOUR(int64_t);
typedef int32_t ints OF_FOUR(int32_t);
typedef int16_t shorts OF_FOUR(int16_t);

enum { STRETCH = 16, LANES = 4, AHEAD = 16, LINE = 64 };

typedef struct {
    const char *table;             /* [rows of the table, width] */
    Py_ssize_t width, pitch, size; /* columns, bytes of a row, and of a number */
    const int64_t *rows;           /* which rows */
    Py_ssize_t count;
    const word *vectors; /* [scored, width] */
    word *scores;        /* [scored, count] */
    Py_ssize_t scored;
    const char *weights; /* [blocks, added, count], the blocks and the vectors so many bytes apart: */
    Py_ssize_t block_apart, vector_apart;
    word *sums; /* [added, width] */
    Py_ssize_t added, blocks;
    const int64_t *cuts; /* the first column of every block, and the end */
    Py_ssize_t padded;   /* columns in the room: with the zeros after every block */
    word *room;          /* [STRETCH, padded], then the vectors and the sums, so padded as well */
} Task;

INLINE Py_ssize_t vectors_of(Py_ssize_t width)
{
    return (width + LANES - 1) / LANES;
}

/* the j-th number, and four from there, as words */
INLINE word one(const char *columns, Py_ssize_t size, Py_ssize_t j)
{
    if (size == 8)
        return ((const word *)columns)[j];
    return (word)(int64_t)(size == 4 ? ((const int32_t *)columns)[j] : ((const int16_t *)columns)[j]);
}

INLINE longs four(const char *columns, Py_ssize_t size, Py_ssize_t j)
{
    const char *from = columns + j * size;
    if (size == 8)
        return *(const longs *)from;
    /* shorts through ints: that way compilers find the instruction for it */
    ints numbers = size == 4 ? *(const ints *)from : __builtin_convertvector(*(const shorts *)from, ints);
    return __builtin_convertvector(numbers, longs);
}

/* some columns of a row as words; the last vector of them may overlap the one before */
INLINE void write_columns(const char *columns, Py_ssize_t size, Py_ssize_t width, word *room)
{
    Py_ssize_t j = 0;
    for (; j + LANES <= width; j += LANES)
        *(longs *)(room + j) = four(columns, size, j);
    if (j < width && width >= LANES)
        *(longs *)(room + width - LANES) = four(columns, size, width - LANES);
    else
        for (; j < width; j++)
            room[j] = one(columns, size, j);
}

INLINE void write_row(const Task *task, const char *row, Py_ssize_t size, word *room)
{
    if (task->blocks <= 1)
        write_columns(row, size, task->width, room);
    else
        for (Py_ssize_t b = 0; b < task->blocks; b++) {
            Py_ssize_t width = task->cuts[b + 1] - task->cuts[b];
            write_columns(row + task->cuts[b] * size, size, width, room);
            room += vectors_of(width) * LANES;
        }
}

INLINE word dot(const word *row, const word *vector, Py_ssize_t padded)
{
    words total = {0};
    for (Py_ssize_t j = 0; j < padded; j += LANES)
        total += *(const words *)(row + j) * *(const words *)(vector + j);
    return (total[0] + total[1]) + (total[2] + total[3]);
}

/* add to `groups` vectors of sums, which stay in registers, the weighted words of some rows */
INLINE void add(word *sums, const word *rows, Py_ssize_t padded, const word *weights, Py_ssize_t count, int groups)
{
    words total[4];
    for (int g = 0; g < groups; g++)
        total[g] = ((const words *)sums)[g];
    for (Py_ssize_t r = 0; r < count; r++)
        for (int g = 0; g < groups; g++)
            total[g] += ((const words *)(rows + r * padded))[g] * weights[r];
    for (int g = 0; g < groups; g++)
        ((words *)sums)[g] = total[g];
}

/* ask for every line of memory that holds some bytes, which may begin in the middle of one */
INLINE void ask_for(const char *bytes, Py_ssize_t count)
{
    for (Py_ssize_t k = 0; k < count; k += LINE)
        __builtin_prefetch(bytes + k);
    if (count)
        __builtin_prefetch(bytes + count - 1);
}

INLINE void stretch(const Task *task, Py_ssize_t size, Py_ssize_t start, Py_ssize_t count)
{
    Py_ssize_t padded = task->padded;
    word *vectors = task->room + STRETCH * padded, *sums = vectors + task->scored * padded;
    for (Py_ssize_t r = 0; r < count; r++) {
        if (start + r + AHEAD < task->count)
            ask_for(task->table + task->rows[start + r + AHEAD] * task->pitch, task->width * size);
        write_row(task, task->table + task->rows[start + r] * task->pitch, size, task->room + r * padded);
    }
    for (Py_ssize_t k = 0; k < task->scored; k++)
        for (Py_ssize_t r = 0; r < count; r++)
            task->scores[k * task->count + start + r] = dot(task->room + r * padded, vectors + k * padded, padded);
    for (Py_ssize_t k = 0; k < task->added; k++) {
        word *total = sums + k * padded;
        const word *rows = task->room;
        for (Py_ssize_t b = 0; b < task->blocks; b++) {
            const char *of_block = task->weights + b * task->block_apart + k * task->vector_apart;
            const word *weights = (const word *)of_block + start;
            Py_ssize_t left = vectors_of(task->cuts[b + 1] - task->cuts[b]);
            for (; left >= 4; left -= 4, total += 4 * LANES, rows += 4 * LANES)
                add(total, rows, padded, weights, count, 4);
            for (; left >= 2; left -= 2, total += 2 * LANES, rows += 2 * LANES)
                add(total, rows, padded, weights, count, 2);
            for (; left; left--, total += LANES, rows += LANES)
                add(total, rows, padded, weights, count, 1);
        }
    }
}

INLINE void multiply_all(const Task *task, Py_ssize_t size)
{
    for (Py_ssize_t start = 0; start < task->count; start += STRETCH)
        stretch(task, size, start, task->count - start < STRETCH ? task->count - start : STRETCH);
}

EVERY_PROCESSOR static void multiply(const Task *task)
{
    Py_ssize_t padded = task->padded, place = 0;
    word *vectors = task->room + STRETCH * padded, *sums = vectors + task->scored * padded;
    for (Py_ssize_t k = 0; k < task->scored; k++)
        write_row(task, (const char *)(task->vectors + k * task->width), sizeof(word), vectors + k * padded);
    if (task->size == 8)
        multiply_all(task, 8);
    else if (task->size == 4)
        multiply_all(task, 4);
    else
        multiply_all(task, 2);
    for (Py_ssize_t b = 0; b < task->blocks; b++) {
        Py_ssize_t first = task->cuts[b], width = task->cuts[b + 1] - first;
        for (Py_ssize_t k = 0; k < task->added; k++)
            memcpy(task->sums + k * task->width + first, sums + k * padded + place, (size_t)width * sizeof(word));
        place += vectors_of(width) * LANES;
    }
}

/* a room of zeros for a task */
static int make_room(Task *task)
{
    task->padded = task->blocks ? 0 : vectors_of(task->width) * LANES;
    for (Py_ssize_t b = 0; b < task->blocks; b++)
        task->padded += vectors_of(task->cuts[b + 1] - task->cuts[b]) * LANES;
    Py_ssize_t rows = STRETCH + task->scored + task->added;
    task->room = calloc((size_t)(rows * task->padded) + 1, sizeof(word));
    return task->room != NULL;
}

enum { TABLE, ROWS, VECTORS, SCORES, WEIGHTS, SUMS, CUTS, ARGUMENTS };

/* what is wrong with the arrays, or NULL; those of nothing that is asked for may have any shape */
static const char *wrong_with(const Py_buffer *given, const Task *task)
{
    if (given[TABLE].ndim != 2 || given[ROWS].ndim != 1 || given[VECTORS].ndim != 2 || given[SCORES].ndim != 2 ||
        given[WEIGHTS].ndim != 3 || given[SUMS].ndim != 2 || given[CUTS].ndim != 1)
        return "an array has other dimensions than are due";
    if (task->size != 2 && task->size != 4 && task->size != 8)
        return "the table has other numbers than of 2, 4 or 8 bytes";
    for (int k = ROWS; k < ARGUMENTS; k++)
        if (given[k].itemsize != 8)
            return "an array has other numbers than 64-bit ones";
    if (given[SCORES].shape[0] != task->scored || given[SUMS].shape[0] != task->added ||
        (task->scored && (given[VECTORS].shape[1] != task->width || given[SCORES].shape[1] != task->count)) ||
        (task->added && (given[WEIGHTS].shape[2] != task->count || given[SUMS].shape[1] != task->width)) ||
        (task->added && !task->blocks) || given[CUTS].shape[0] != task->blocks + 1)
        return "the shapes do not fit each other";
    if (given[TABLE].strides[1] != given[TABLE].itemsize || task->pitch < task->width * given[TABLE].itemsize)
        return "the numbers of a row do not lie side by side";
    if (task->added && task->blocks && task->count > 1 && given[WEIGHTS].strides[2] != sizeof(word))
        return "the weights of a vector do not lie side by side";
    if (task->blocks && (task->cuts[0] != 0 || task->cuts[task->blocks] != task->width))
        return "the blocks have other columns than the table";
    for (Py_ssize_t b = 0; b < task->blocks; b++)
        if (task->cuts[b] > task->cuts[b + 1])
            return "the blocks have other columns than the table";
    for (Py_ssize_t r = 0; r < task->count; r++)
        if (task->rows[r] < 0 || task->rows[r] >= given[TABLE].shape[0])
            return "the table has no such row";
    return NULL;
}

static const int FLAGS[] = {APART, READ, READ, WRITE, APART, WRITE, READ};

static PyObject *products(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Py_buffer given[ARGUMENTS];
    (void)self;
    if (count != ARGUMENTS) {
        PyErr_SetString(PyExc_TypeError, "products needs seven arrays");
        return NULL;
    }
    if (!hold(given, arguments, FLAGS, ARGUMENTS))
        return NULL;
    Task task = {.table = given[TABLE].buf, .rows = given[ROWS].buf, .vectors = given[VECTORS].buf,
                 .scores = given[SCORES].buf, .weights = given[WEIGHTS].buf, .sums = given[SUMS].buf,
                 .cuts = given[CUTS].buf};
    if (given[TABLE].ndim == 2 && given[ROWS].ndim == 1 && given[VECTORS].ndim == 2 && given[WEIGHTS].ndim == 3) {
        task.width = given[TABLE].shape[1];
        task.pitch = given[TABLE].strides[0];
        task.size = given[TABLE].itemsize;
        task.count = given[ROWS].shape[0];
        task.scored = given[VECTORS].shape[0];
        task.blocks = given[WEIGHTS].shape[0];
        task.added = given[WEIGHTS].shape[1];
        task.block_apart = given[WEIGHTS].strides[0];
        task.vector_apart = given[WEIGHTS].strides[1];
    }
    const char *wrong = wrong_with(given, &task);
    if (wrong == NULL && !make_room(&task))
        wrong = "there is no memory for some rows";
    if (wrong == NULL) {
        Py_BEGIN_ALLOW_THREADS
        multiply(&task);
        Py_END_ALLOW_THREADS
    }
    free(task.room);
    release(given, ARGUMENTS);
    return nothing_or(wrong);
}

/* Fixed-point numbers: `push` added to a small number leaves its fixed-point digits in the lowest bits. */

enum { PUSHED, MASK, PIECE, MASKED };
static const int MASKED_FLAGS[] = {READ, READ, WRITE};

EVERY_PROCESSOR static int write_masked(const double *values, const word *mask, word *piece, Py_ssize_t count,
                                        double push, double small)
{
    int large = 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        double pushed = values[k] + push;
        word bits;
        memcpy(&bits, &pushed, sizeof bits);
        piece[k] = bits + mask[k];
        large |= !(values[k] < small && values[k] > -small);
    }
    return !large;
}

static PyObject *masked(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Py_buffer given[MASKED];
    (void)self;
    if (count != MASKED + 2) {
        PyErr_SetString(PyExc_TypeError, "masked needs three arrays and two numbers");
        return NULL;
    }
    double push = PyFloat_AsDouble(arguments[MASKED]), small = PyFloat_AsDouble(arguments[MASKED + 1]);
    if (PyErr_Occurred() || !hold(given, arguments, MASKED_FLAGS, MASKED))
        return NULL;
    int fits = given[PUSHED].itemsize == 8 && given[PUSHED].format[0] == 'd' && given[MASK].len >= given[PUSHED].len &&
               given[PIECE].len == given[PUSHED].len;
    int all_small = fits && write_masked(given[PUSHED].buf, given[MASK].buf, given[PIECE].buf,
                                         given[PUSHED].len / (Py_ssize_t)sizeof(word), push, small);
    release(given, MASKED);
    return fits ? PyBool_FromLong(all_small) : nothing_or("the shapes do not fit each other");
}

/* a word of a message, which may begin at any byte */
typedef word loose_word __attribute__((aligned(1), may_alias));

EVERY_PROCESSOR static void add_words(word *total, const loose_word *piece, Py_ssize_t count)
{
    for (Py_ssize_t k = 0; k < count; k++)
        total[k] += piece[k];
}

EVERY_PROCESSOR static int write_total(const word *total, double *out, Py_ssize_t count, double step, double widest)
{
    int wide = 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        out[k] = (double)(int64_t)total[k] * step;
        wide |= out[k] > widest || out[k] < -widest;
    }
    return !wide;
}

/* add every array of a list to the words; 0 and an exception if one has another length */
static int add_pieces(const Py_buffer *total, PyObject *pieces)
{
    Py_ssize_t count = PyList_Size(pieces);
    for (Py_ssize_t k = 0; k < count; k++) {
        Py_buffer piece;
        if (PyObject_GetBuffer(PyList_GetItem(pieces, k), &piece, READ) < 0)
            return 0;
        int fits = piece.itemsize == sizeof(word) && piece.len == total->len;
        if (fits)
            add_words(total->buf, piece.buf, piece.len / (Py_ssize_t)sizeof(word));
        PyBuffer_Release(&piece);
        if (!fits) {
            PyErr_SetString(PyExc_ValueError, "a piece has another length");
            return 0;
        }
    }
    return count >= 0;
}

enum { TOTAL, OUT, TOTALLED };
static const int TOTAL_FLAGS[] = {WRITE, WRITE};

static PyObject *totalled(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Py_buffer given[TOTALLED];
    (void)self;
    if (count != TOTALLED + 3) {
        PyErr_SetString(PyExc_TypeError, "totalled needs two arrays, a list of arrays and two numbers");
        return NULL;
    }
    double step = PyFloat_AsDouble(arguments[TOTALLED + 1]), widest = PyFloat_AsDouble(arguments[TOTALLED + 2]);
    if (PyErr_Occurred() || !hold(given, arguments, TOTAL_FLAGS, TOTALLED))
        return NULL;
    PyObject *result = NULL;
    if (given[TOTAL].itemsize != sizeof(word) || given[OUT].len != given[TOTAL].len)
        PyErr_SetString(PyExc_ValueError, "the shapes do not fit each other");
    else if (add_pieces(&given[TOTAL], arguments[TOTALLED]))
        result = PyBool_FromLong(write_total(given[TOTAL].buf, given[OUT].buf,
                                             given[TOTAL].len / (Py_ssize_t)sizeof(word), step, widest));
    release(given, TOTALLED);
    return result;
}

static PyMethodDef methods[] = {
    {"products", (PyCFunction)(void (*)(void))products, METH_FASTCALL,
     "products(table, rows, vectors, scores, weights, sums, cuts): writes scores and sums."},
    {"masked", (PyCFunction)(void (*)(void))masked, METH_FASTCALL,
     "masked(values, mask, piece, push, small): writes the piece; False if a value is not small."},
    {"totalled", (PyCFunction)(void (*)(void))totalled, METH_FASTCALL,
     "totalled(total, out, pieces, step, widest): adds the pieces to the total and writes out; False if it is too wide."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {NO_LOCK {0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_words", NULL, 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__words(void)
{
    return PyModuleDef_Init(&module);
}
