/* Arrays that a compiled function is given, through the buffer protocol: held together, released together. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "no_lock.h"

/* one function for each kind of processor, chosen when the module is loaded */
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#if __GNUC__ >= 12
#define EVERY_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define EVERY_PROCESSOR __attribute__((target_clones("avx2", "default")))
#endif
#else
#define EVERY_PROCESSOR
#endif
#define INLINE static inline __attribute__((always_inline))

enum { READ = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT, WRITE = READ | PyBUF_WRITABLE, APART = PyBUF_STRIDES };

static void release(Py_buffer *given, int held)
{
    while (held > 0)
        PyBuffer_Release(&given[--held]);
}

/* hold so many arrays, each as its flags say; 0 and an exception if one cannot be had, or is a single number */
static int hold(Py_buffer *given, PyObject *const *arguments, const int *flags, int count)
{
    for (int held = 0; held < count; held++) {
        if (PyObject_GetBuffer(arguments[held], &given[held], flags[held]) < 0) {
            release(given, held);
            return 0;
        }
        if (given[held].ndim < 1) {
            release(given, held + 1);
            PyErr_SetString(PyExc_ValueError, "a number where an array was due");
            return 0;
        }
    }
    return 1;
}

/* what a function returns: nothing or, where something was wrong, an exception that says what */
static PyObject *nothing_or(const char *wrong)
{
    if (wrong == NULL)
        Py_RETURN_NONE;
    PyErr_SetString(PyExc_ValueError, wrong);
    return NULL;
}
