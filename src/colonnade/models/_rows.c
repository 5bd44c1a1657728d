/* Sparse rows, put in an order and multiplied: see sparse.py, which does the same with SciPy where no compiler was
 * there; tests/models/test_sparse.py compares the two to the last bit.
 *
 * A table of one party has few numbers a row, and as many rows have one as have two or three. Whoever loops over the
 * numbers of a row pays for the end of every loop, which the processor cannot foresee, and not for the arithmetic.
 * So every number has its row beside it, and a product is one loop over the numbers of all its rows. Columns take
 * two bytes where that is enough, and where all numbers are one they are not stored at all.
 */
#include "../buffers.h"

enum { AHEAD = 24, FEW = 4, LONG = 8 };

typedef struct {
    const int64_t *pointers; /* where every row begins, and the end */
    const int32_t *rows;     /* of every number: its row, */
    const char *columns;     /* its column, */
    Py_ssize_t size;         /* of so many bytes, */
    const double *numbers;   /* and the number; NULL if all are one */
    Py_ssize_t start, end;   /* the rows that are multiplied */
    Py_ssize_t classes;      /* numbers that a row, or a column, has on the other side */
    Py_ssize_t width;
} Task;

INLINE Py_ssize_t at(const char *columns, Py_ssize_t size, int64_t k)
{
    return size == 2 ? (Py_ssize_t)((const uint16_t *)columns)[k] : (Py_ssize_t)((const int32_t *)columns)[k];
}

/* both products are one loop; what is constant here is known when it is compiled */
INLINE void multiply(const Task *task, const double *from, double *to, int gradient, Py_ssize_t size, int ones, int one)
{
    Py_ssize_t classes = one ? 1 : task->classes;
    int64_t last = task->pointers[task->end];
    for (int64_t k = task->pointers[task->start]; k < last; k++) {
        Py_ssize_t row = (task->rows[k] - task->start) * classes, column = at(task->columns, size, k) * classes;
        const double *source = from + (gradient ? row : column);
        double *target = to + (gradient ? column : row);
        for (Py_ssize_t c = 0; c < classes; c++)
            target[c] += ones ? source[c] : task->numbers[k] * source[c];
    }
}

INLINE void multiply_sized(const Task *task, const double *from, double *to, int gradient, Py_ssize_t size)
{
    if (task->classes == 1 && task->numbers == NULL)
        multiply(task, from, to, gradient, size, 1, 1);
    else if (task->classes == 1)
        multiply(task, from, to, gradient, size, 0, 1);
    else if (task->numbers == NULL)
        multiply(task, from, to, gradient, size, 1, 0);
    else
        multiply(task, from, to, gradient, size, 0, 0);
}

/* long rows one by one: there the end of a loop is seldom, and a score that is added to in memory slower than one at hand */
INLINE void score_long(const Task *task, const double *w, double *scores, Py_ssize_t size, int ones)
{
    for (Py_ssize_t r = task->start; r < task->end; r++) {
        double score = 0;
        for (int64_t k = task->pointers[r]; k < task->pointers[r + 1]; k++)
            score += ones ? w[at(task->columns, size, k)] : task->numbers[k] * w[at(task->columns, size, k)];
        scores[r - task->start] = score;
    }
}

INLINE void score_sized(const Task *task, const double *w, double *scores, Py_ssize_t size)
{
    int64_t count = task->pointers[task->end] - task->pointers[task->start];
    if (task->classes > 1 || count < LONG * (task->end - task->start))
        multiply_sized(task, w, scores, 0, size);
    else if (task->numbers == NULL)
        score_long(task, w, scores, size, 1);
    else
        score_long(task, w, scores, size, 0);
}

static void write_scores(const Task *task, const double *w, double *scores)
{
    if (task->size == 2)
        score_sized(task, w, scores, 2);
    else
        score_sized(task, w, scores, 4);
}

static void write_gradient(const Task *task, const double *theta, double *gradient)
{
    if (task->size == 2)
        multiply_sized(task, theta, gradient, 1, 2);
    else
        multiply_sized(task, theta, gradient, 1, 4);
}

static int is(const Py_buffer *array, Py_ssize_t size, const char *kinds)
{
    const char *format = array->format;
    return array->itemsize == size && format != NULL && format[0] && strchr(kinds, format[0]) && !format[1];
}

/* what is wrong with the arrays of a table, or NULL; that its columns exist is its maker's to see */
static const char *wrong_with(const Py_buffer *pointers, const Py_buffer *columns, const Py_buffer *numbers)
{
    Py_ssize_t size = columns->itemsize, count = columns->shape[0];
    const int64_t *begin = pointers->buf;
    if (!is(pointers, 8, "lq") || (size != 2 && size != 4) || !is(columns, size, size == 2 ? "H" : "i") ||
        !is(numbers, 8, "d"))
        return "a table has other arrays than are due";
    if ((numbers->shape[0] && numbers->shape[0] != count) || pointers->shape[0] < 1 || begin[0] < 0 ||
        begin[pointers->shape[0] - 1] > count)
        return "the table is not whole";
    return NULL;
}

enum { POINTERS, NUMBERS_ROWS, COLUMNS, NUMBERS, FROM, TO, ARRAYS };

static const char *wrong_with_product(const Py_buffer *given, const Task *task, int gradient)
{
    const Py_buffer *from = &given[FROM], *to = &given[TO];
    Py_ssize_t rows = given[POINTERS].shape[0] - 1;
    if (!is(&given[NUMBERS_ROWS], 4, "i") || given[NUMBERS_ROWS].shape[0] != given[COLUMNS].shape[0])
        return "the table is not whole";
    if (!is(from, 8, "d") || !is(to, 8, "d") || from->ndim < 1 || from->ndim > 2 || from->ndim != to->ndim ||
        (from->ndim == 2 && from->shape[1] != to->shape[1]))
        return "the shapes do not fit each other";
    if (task->start < 0 || task->start > task->end || task->end > rows ||
        (gradient ? from : to)->shape[0] != task->end - task->start ||
        (gradient ? to : from)->shape[0] != task->width)
        return "the shapes do not fit each other";
    return NULL;
}

static PyObject *product(PyObject *const *arguments, Py_ssize_t count, int gradient)
{
    static const int flags[] = {READ, READ, READ, READ, READ, WRITE};
    Py_buffer given[ARRAYS];
    if (count != ARRAYS + 3) {
        PyErr_SetString(PyExc_TypeError, "a product needs six arrays and three numbers");
        return NULL;
    }
    Py_ssize_t start = PyLong_AsSsize_t(arguments[ARRAYS]), end = PyLong_AsSsize_t(arguments[ARRAYS + 1]);
    Py_ssize_t width = PyLong_AsSsize_t(arguments[ARRAYS + 2]);
    if (PyErr_Occurred() || !hold(given, arguments, flags, ARRAYS))
        return NULL;
    int ones = given[NUMBERS].shape[0] == 0;
    Task task = {.pointers = given[POINTERS].buf, .rows = given[NUMBERS_ROWS].buf, .columns = given[COLUMNS].buf,
                 .size = given[COLUMNS].itemsize, .numbers = ones ? NULL : given[NUMBERS].buf, .start = start,
                 .end = end, .classes = given[FROM].ndim > 1 ? given[FROM].shape[1] : 1, .width = width};
    const char *wrong = wrong_with(&given[POINTERS], &given[COLUMNS], &given[NUMBERS]);
    if (wrong == NULL)
        wrong = wrong_with_product(given, &task, gradient);
    if (wrong == NULL) {
        Py_BEGIN_ALLOW_THREADS
        memset(given[TO].buf, 0, (size_t)given[TO].len);
        (gradient ? write_gradient : write_scores)(&task, given[FROM].buf, given[TO].buf);
        Py_END_ALLOW_THREADS
    }
    release(given, ARRAYS);
    return nothing_or(wrong);
}

static PyObject *scores(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self;
    return product(arguments, count, 0);
}

static PyObject *gradient(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    (void)self;
    return product(arguments, count, 1);
}

/* -- putting rows in an order -- */

typedef struct {
    const int64_t *pointers;
    const char *columns;
    const double *numbers;
    const int64_t *order;
    Py_ssize_t count;
    int64_t *new_pointers;
    int32_t *new_rows;
    char *new_columns;
    double *new_numbers;
} Move;

/* Rows of few numbers are copied as if they had `FEW` of them: what is too much is written over by the next row. So
 * there is no loop whose end cannot be foreseen; all arrays have room for it at their end. */
INLINE void move(const Move *task, Py_ssize_t size, int ones)
{
    int64_t to = 0;
    for (Py_ssize_t r = 0; r < task->count; r++) {
        if (r + 2 * AHEAD < task->count)
            __builtin_prefetch(task->pointers + task->order[r + 2 * AHEAD]);
        if (r + AHEAD < task->count) {
            int64_t later = task->pointers[task->order[r + AHEAD]];
            __builtin_prefetch(task->columns + later * size);
            if (!ones)
                __builtin_prefetch(task->numbers + later);
        }
        int64_t from = task->pointers[task->order[r]], length = task->pointers[task->order[r] + 1] - from;
        task->new_pointers[r] = to;
        for (int64_t k = 0; k < length; k += FEW) {
            memcpy(task->new_columns + (to + k) * size, task->columns + (from + k) * size, (size_t)(FEW * size));
            if (!ones)
                memcpy(task->new_numbers + to + k, task->numbers + from + k, FEW * sizeof(double));
            for (int j = 0; j < FEW; j++)
                task->new_rows[to + k + j] = (int32_t)r;
        }
        to += length;
    }
    task->new_pointers[task->count] = to;
}

static void move_all(const Move *task, Py_ssize_t size)
{
    if (size == 2 && task->numbers == NULL)
        move(task, 2, 1);
    else if (size == 2)
        move(task, 2, 0);
    else if (task->numbers == NULL)
        move(task, 4, 1);
    else
        move(task, 4, 0);
}

enum { OLD_POINTERS, OLD_COLUMNS, OLD_NUMBERS, ORDER, NEW_POINTERS, NEW_ROWS, NEW_COLUMNS, NEW_NUMBERS, MOVED };

/* what is wrong with a move, or NULL */
static const char *wrong_with_move(const Py_buffer *given, const Move *task)
{
    Py_ssize_t rows = given[OLD_POINTERS].shape[0] - 1;
    int64_t total = 0;
    const char *wrong = wrong_with(&given[OLD_POINTERS], &given[OLD_COLUMNS], &given[OLD_NUMBERS]);
    if (wrong == NULL)
        wrong = wrong_with(&given[NEW_POINTERS], &given[NEW_COLUMNS], &given[NEW_NUMBERS]);
    if (wrong != NULL)
        return wrong;
    if (!is(&given[ORDER], 8, "lq") || !is(&given[NEW_ROWS], 4, "i") ||
        given[NEW_POINTERS].shape[0] != task->count + 1 || given[NEW_ROWS].shape[0] != given[NEW_COLUMNS].shape[0] ||
        given[NEW_COLUMNS].itemsize != given[OLD_COLUMNS].itemsize ||
        (given[NEW_NUMBERS].shape[0] == 0) != (given[OLD_NUMBERS].shape[0] == 0))
        return "the shapes do not fit each other";
    for (Py_ssize_t r = 0; r < rows; r++)
        if (task->pointers[r] > task->pointers[r + 1])
            return "the table is not whole";
    if (task->pointers[rows] + FEW > given[OLD_COLUMNS].shape[0])
        return "the table has no room at its end";
    for (Py_ssize_t r = 0; r < task->count; r++) {
        if (task->order[r] < 0 || task->order[r] >= rows)
            return "the table has no such row";
        total += task->pointers[task->order[r] + 1] - task->pointers[task->order[r]];
    }
    return total + FEW > given[NEW_COLUMNS].shape[0] ? "the new table has no room at its end" : NULL;
}

static PyObject *put_in_order(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    static const int flags[] = {READ, READ, READ, READ, WRITE, WRITE, WRITE, WRITE};
    Py_buffer given[MOVED];
    (void)self;
    if (count != MOVED) {
        PyErr_SetString(PyExc_TypeError, "put_in_order needs a table, an order and room for another table");
        return NULL;
    }
    if (!hold(given, arguments, flags, MOVED))
        return NULL;
    Move task = {.pointers = given[OLD_POINTERS].buf, .columns = given[OLD_COLUMNS].buf,
                 .numbers = given[OLD_NUMBERS].shape[0] ? given[OLD_NUMBERS].buf : NULL,
                 .order = given[ORDER].buf, .count = given[ORDER].shape[0], .new_pointers = given[NEW_POINTERS].buf,
                 .new_rows = given[NEW_ROWS].buf, .new_columns = given[NEW_COLUMNS].buf,
                 .new_numbers = given[NEW_NUMBERS].buf};
    memset(task.new_pointers, 0, (size_t)given[NEW_POINTERS].len);
    const char *wrong = wrong_with_move(given, &task);
    if (wrong == NULL) {
        Py_BEGIN_ALLOW_THREADS
        move_all(&task, given[OLD_COLUMNS].itemsize);
        Py_END_ALLOW_THREADS
    }
    release(given, MOVED);
    return nothing_or(wrong);
}

static PyMethodDef methods[] = {
    {"scores", (PyCFunction)(void (*)(void))scores, METH_FASTCALL,
     "scores(pointers, rows, columns, numbers, w, out, start, end, width): writes the products of rows and w."},
    {"gradient", (PyCFunction)(void (*)(void))gradient, METH_FASTCALL,
     "gradient(pointers, rows, columns, numbers, theta, out, start, end, width): writes the sum of rows times theta."},
    {"put_in_order", (PyCFunction)(void (*)(void))put_in_order, METH_FASTCALL,
     "put_in_order(pointers, columns, numbers, order, and the four arrays of the new table): writes these."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_rows", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__rows(void)
{
    return PyModule_Create(&module);
}
