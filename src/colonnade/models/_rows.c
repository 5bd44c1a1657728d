/* Sparse rows, put in an order and multiplied: see sparse.py, which does the same with SciPy where no compiler was
 * there; tests/models/test_sparse.py compares the two to the last bit.
 *
 * A table of one party has few numbers a row, and as many rows have one as have two or three. Whoever loops over the
 * numbers of a row pays for the end of every loop, which the processor cannot foresee, and not for the arithmetic.
 * So every number has its row beside it, and a product is one loop over the numbers of all its rows. Columns take
 * two bytes where that is enough, and where all numbers are one they are not stored at all.
 */
#include "../buffers.h"
#include <stdlib.h>

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

/* -- a table, which keeps hold of its arrays -- */

enum { POINTERS, NUMBERS_ROWS, COLUMNS, NUMBERS, ARRAYS };

typedef struct {
    PyObject_HEAD
    Py_buffer given[ARRAYS];
    int held;
    Py_ssize_t rows, width;
} Table;

static int table_init(Table *table, PyObject *arguments, PyObject *named)
{
    static const int flags[] = {READ, READ, READ, READ};
    PyObject *arrays[ARRAYS];
    if (table->held || named != NULL) {
        PyErr_SetString(PyExc_TypeError, "a table is made once, of four arrays and its width");
        return -1;
    }
    if (!PyArg_ParseTuple(arguments, "OOOOn", &arrays[0], &arrays[1], &arrays[2], &arrays[3], &table->width))
        return -1;
    if (!hold(table->given, arrays, flags, ARRAYS))
        return -1;
    table->held = ARRAYS;
    table->rows = table->given[POINTERS].shape[0] - 1;
    const char *wrong = wrong_with(&table->given[POINTERS], &table->given[COLUMNS], &table->given[NUMBERS]);
    if (wrong == NULL && (!is(&table->given[NUMBERS_ROWS], 4, "i") || table->width < 0 ||
                          table->given[NUMBERS_ROWS].shape[0] != table->given[COLUMNS].shape[0]))
        wrong = "the table is not whole";
    if (wrong == NULL)
        return 0;
    PyErr_SetString(PyExc_ValueError, wrong);
    return -1;
}

static void table_dealloc(Table *table)
{
    PyTypeObject *type = Py_TYPE((PyObject *)table);
    release(table->given, table->held);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(table);
    Py_DECREF(type);
}

/* -- products of its rows -- */

enum { FROM, TO, PAIR };
enum { SCORES, GRADIENT, DESCENT };

static const char *wrong_with_product(const Py_buffer *pair, const Table *table, const Task *task, int what)
{
    const Py_buffer *from = &pair[FROM], *to = &pair[TO];
    if (!is(from, 8, "d") || !is(to, 8, "d") || from->ndim < 1 || from->ndim > 2 || from->ndim != to->ndim ||
        (from->ndim == 2 && from->shape[1] != to->shape[1]))
        return "the shapes do not fit each other";
    if (task->start < 0 || task->start > task->end || task->end > table->rows ||
        (what == SCORES ? to : from)->shape[0] != task->end - task->start ||
        (what == SCORES ? from : to)->shape[0] != task->width)
        return "the shapes do not fit each other";
    return NULL;
}

/* to += factor times the gradient, which is made apart: so it is the same to the last bit as in two steps */
static int descend(const Task *task, const double *theta, double *to, double factor)
{
    enum { NEAR = 512 };
    double near[NEAR];
    Py_ssize_t count = task->width * task->classes;
    double *gradient = count <= NEAR ? near : malloc((size_t)count * sizeof(double));
    if (gradient == NULL)
        return 0;
    memset(gradient, 0, (size_t)count * sizeof(double));
    write_gradient(task, theta, gradient);
    for (Py_ssize_t k = 0; k < count; k++)
        to[k] += factor * gradient[k];
    if (gradient != near)
        free(gradient);
    return 1;
}

static PyObject *product(Table *table, PyObject *const *arguments, Py_ssize_t count, int what)
{
    static const int flags[] = {READ, WRITE};
    Py_buffer pair[PAIR];
    int whole = 1;
    if (count != PAIR + (what == DESCENT ? 3 : 2) || !table->held) {
        PyErr_SetString(PyExc_TypeError, "a product needs two arrays, a first and a last row, a descent a factor");
        return NULL;
    }
    Py_ssize_t start = PyLong_AsSsize_t(arguments[PAIR]), end = PyLong_AsSsize_t(arguments[PAIR + 1]);
    double factor = what == DESCENT ? PyFloat_AsDouble(arguments[PAIR + 2]) : 0;
    if (PyErr_Occurred() || !hold(pair, arguments, flags, PAIR))
        return NULL;
    const Py_buffer *given = table->given;
    Task task = {.pointers = given[POINTERS].buf, .rows = given[NUMBERS_ROWS].buf, .columns = given[COLUMNS].buf,
                 .size = given[COLUMNS].itemsize, .numbers = given[NUMBERS].shape[0] ? given[NUMBERS].buf : NULL,
                 .start = start, .end = end, .classes = pair[FROM].ndim > 1 ? pair[FROM].shape[1] : 1,
                 .width = table->width};
    const char *wrong = wrong_with_product(pair, table, &task, what);
    if (wrong == NULL) {
        Py_BEGIN_ALLOW_THREADS
        if (what == DESCENT)
            whole = descend(&task, pair[FROM].buf, pair[TO].buf, factor);
        else {
            memset(pair[TO].buf, 0, (size_t)pair[TO].len);
            (what == GRADIENT ? write_gradient : write_scores)(&task, pair[FROM].buf, pair[TO].buf);
        }
        Py_END_ALLOW_THREADS
    }
    release(pair, PAIR);
    return whole ? nothing_or(wrong) : PyErr_NoMemory();
}

static PyObject *scores(Table *table, PyObject *const *arguments, Py_ssize_t count)
{
    return product(table, arguments, count, SCORES);
}

static PyObject *gradient(Table *table, PyObject *const *arguments, Py_ssize_t count)
{
    return product(table, arguments, count, GRADIENT);
}

static PyObject *descent(Table *table, PyObject *const *arguments, Py_ssize_t count)
{
    return product(table, arguments, count, DESCENT);
}

static PyMethodDef table_methods[] = {
    {"scores", (PyCFunction)(void (*)(void))scores, METH_FASTCALL,
     "scores(w, out, start, end): writes the products of rows and w."},
    {"gradient", (PyCFunction)(void (*)(void))gradient, METH_FASTCALL,
     "gradient(theta, out, start, end): writes the sum of rows times theta."},
    {"descend", (PyCFunction)(void (*)(void))descent, METH_FASTCALL,
     "descend(theta, w, start, end, factor): adds the sum of rows times theta, times the factor, to w."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot table_slots[] = {
    {Py_tp_init, table_init},       {Py_tp_dealloc, table_dealloc},
    {Py_tp_methods, table_methods}, {Py_tp_doc, "Table(pointers, rows, columns, numbers, width)"},
    {0, NULL},
};

static PyType_Spec table_spec = {"colonnade.models._rows.Table", sizeof(Table), 0, Py_TPFLAGS_DEFAULT, table_slots};

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
    {"put_in_order", (PyCFunction)(void (*)(void))put_in_order, METH_FASTCALL,
     "put_in_order(pointers, columns, numbers, order, and the four arrays of the new table): writes these."},
    {NULL, NULL, 0, NULL},
};

static int add_types(PyObject *module)
{
    PyObject *table = PyType_FromSpec(&table_spec);
    int added = table == NULL ? -1 : PyModule_AddObjectRef(module, "Table", table);
    Py_XDECREF(table);
    return added;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, add_types}, NO_LOCK {0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_rows", NULL, 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__rows(void)
{
    return PyModuleDef_Init(&module);
}
