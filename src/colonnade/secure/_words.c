/* Products of rows of a table and words modulo 2^64, in one pass over the rows: see words.py, which has the same in
 * NumPy; tests/secure/test_words.py compares the two.
 *
 * Rows lie anywhere in the table, so most of the time would go by waiting for memory: the rows of the next stretch are
 * asked for while those of this one are multiplied, and both products read a row while it is near.
 */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* one function for each kind of processor, chosen when the module is loaded */
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define EVERY_PROCESSOR __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define EVERY_PROCESSOR
#endif
#define INLINE static inline __attribute__((always_inline))

typedef uint64_t word;
typedef word words __attribute__((vector_size(32), aligned(8), may_alias));

enum { STRETCH = 8, LANES = 4, LINE = 64 };

typedef struct {
    const char *table;             /* [rows of the table, width] */
    Py_ssize_t width, pitch, size; /* columns, bytes of a row, and of a number */
    const int64_t *rows;           /* which rows */
    Py_ssize_t count;
    const word *vectors; /* [scored, width] */
    word *scores;        /* [scored, count] */
    Py_ssize_t scored;
    const word *weights; /* [blocks, added, count] */
    word *sums;          /* [added, width] */
    Py_ssize_t added, blocks;
    const int64_t *cuts; /* the first column of every block, and the end */
    word *room;          /* for a stretch of rows whose numbers are shorter than words */
} Task;

INLINE word dot(const word *row, const word *vector, Py_ssize_t width)
{
    words total = {0, 0, 0, 0};
    Py_ssize_t j = 0;
    for (; j + LANES <= width; j += LANES)
        total += *(const words *)(row + j) * *(const words *)(vector + j);
    word rest = total[0] + total[1] + total[2] + total[3];
    for (; j < width; j++)
        rest += row[j] * vector[j];
    return rest;
}

/* add to `groups` times four sums, which stay in registers, the weighted words of some rows */
INLINE void add(word *sums, const word **rows, const word *weights, Py_ssize_t count, Py_ssize_t column, int groups)
{
    words total[4];
    for (int g = 0; g < groups; g++)
        total[g] = ((const words *)sums)[g];
    for (Py_ssize_t r = 0; r < count; r++) {
        words weight = {weights[r], weights[r], weights[r], weights[r]};
        for (int g = 0; g < groups; g++)
            total[g] += ((const words *)(rows[r] + column))[g] * weight;
    }
    for (int g = 0; g < groups; g++)
        ((words *)sums)[g] = total[g];
}

/* a row as words: where it lies, or written into the room */
INLINE const word *as_words(const Task *task, const char *row, word *room)
{
    if (task->size == 8)
        return (const word *)row;
    if (task->size == 4)
        for (Py_ssize_t j = 0; j < task->width; j++)
            room[j] = (word)(int64_t)((const int32_t *)row)[j];
    else
        for (Py_ssize_t j = 0; j < task->width; j++)
            room[j] = (word)(int64_t)((const int16_t *)row)[j];
    return room;
}

INLINE void stretch(const Task *task, Py_ssize_t start, Py_ssize_t count)
{
    const word *rows[STRETCH];
    for (Py_ssize_t r = start + count; r < start + count + STRETCH && r < task->count; r++)
        for (Py_ssize_t byte = 0; byte < task->width * task->size; byte += LINE)
            __builtin_prefetch(task->table + task->rows[r] * task->pitch + byte);
    for (Py_ssize_t r = 0; r < count; r++)
        rows[r] = as_words(task, task->table + task->rows[start + r] * task->pitch, task->room + r * task->width);
    for (Py_ssize_t k = 0; k < task->scored; k++)
        for (Py_ssize_t r = 0; r < count; r++)
            task->scores[k * task->count + start + r] = dot(rows[r], task->vectors + k * task->width, task->width);
    for (Py_ssize_t b = 0; b < task->blocks; b++)
        for (Py_ssize_t k = 0; k < task->added; k++) {
            const word *weights = task->weights + (b * task->added + k) * task->count + start;
            word *sums = task->sums + k * task->width;
            Py_ssize_t j = task->cuts[b], end = task->cuts[b + 1];
            for (; j + 4 * LANES <= end; j += 4 * LANES)
                add(sums + j, rows, weights, count, j, 4);
            for (; j + LANES <= end; j += LANES)
                add(sums + j, rows, weights, count, j, 1);
            for (; j < end; j++)
                for (Py_ssize_t r = 0; r < count; r++)
                    sums[j] += rows[r][j] * weights[r];
        }
}

EVERY_PROCESSOR static void multiply(const Task *task)
{
    memset(task->sums, 0, (size_t)(task->added * task->width) * sizeof(word));
    for (Py_ssize_t start = 0; start < task->count; start += STRETCH)
        stretch(task, start, task->count - start < STRETCH ? task->count - start : STRETCH);
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
        given[CUTS].shape[0] != task->blocks + 1)
        return "the shapes do not fit each other";
    if (given[TABLE].strides[1] != given[TABLE].itemsize || task->pitch < task->width * given[TABLE].itemsize)
        return "the numbers of a row do not lie side by side";
    for (Py_ssize_t b = 0; b < task->blocks; b++)
        if (task->cuts[b] < 0 || task->cuts[b] > task->cuts[b + 1] || task->cuts[b + 1] > task->width)
            return "a block has other columns than the table";
    for (Py_ssize_t r = 0; r < task->count; r++)
        if (task->rows[r] < 0 || task->rows[r] >= given[TABLE].shape[0])
            return "the table has no such row";
    return NULL;
}

static PyObject *products(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Py_buffer given[ARGUMENTS];
    int held = 0;
    const char *wrong = NULL;
    (void)self;
    if (count != ARGUMENTS) {
        PyErr_SetString(PyExc_TypeError, "products needs seven arrays");
        return NULL;
    }
    for (; held < ARGUMENTS; held++) {
        int written = held == SCORES || held == SUMS;
        int flags = (held == TABLE ? PyBUF_STRIDES : PyBUF_C_CONTIGUOUS) | (written ? PyBUF_WRITABLE : 0);
        if (PyObject_GetBuffer(arguments[held], &given[held], flags) < 0)
            break;
    }
    if (held == ARGUMENTS) {
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
        }
        wrong = wrong_with(given, &task);
        if (wrong == NULL && task.size < 8 && !(task.room = malloc((size_t)(STRETCH * task.width) * sizeof(word) + 1)))
            wrong = "there is no memory for some rows";
        if (wrong == NULL) {
            Py_BEGIN_ALLOW_THREADS
            multiply(&task);
            Py_END_ALLOW_THREADS
        }
        free(task.room);
    }
    int whole = held == ARGUMENTS;
    while (held > 0)
        PyBuffer_Release(&given[--held]);
    if (!whole)
        return NULL;
    if (wrong != NULL) {
        PyErr_SetString(PyExc_ValueError, wrong);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"products", (PyCFunction)(void (*)(void))products, METH_FASTCALL,
     "products(table, rows, vectors, scores, weights, sums, cuts): writes scores and sums."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_words", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__words(void)
{
    return PyModule_Create(&module);
}
