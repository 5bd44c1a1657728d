/* What every frame on a line needs: a header with its number, being cut out of a stream of bytes, and TLS. The same
   is in Python in ends.py, framing.py and stream/sealed.py, for where no compiler was there.

   What nearly all frames are is done here, everything else is left to Python: `open` answers None to a frame that
   is not simply the next message on its line, and changes nothing. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>
#include <unistd.h>

#include "../no_lock.h"

enum { KIND = 1, ROUTE = 4, NUMBERS = KIND + ROUTE, NARROW = 2, WIDE = 4 }; /* bytes of a header's parts */
enum { DATA = 0, WIDENED = 0x40 };
enum { ACK_EVERY = 64, ACK_BYTES = 1 << 20 };
enum { RECORD = 1 << 14 }; /* the most bytes of a TLS record */
static const Py_ssize_t COPIED = 1 << 16; /* a longer payload stays where it is, and is a view */
static const Py_ssize_t MOST_NUMBERS = UINT32_MAX;

static void put(unsigned char *at, uint64_t number, int bytes) /* little-endian */
{
    for (int k = 0; k < bytes; k++)
        at[k] = (unsigned char)(number >> 8 * k);
}

static uint64_t get(const unsigned char *at, int bytes)
{
    uint64_t number = 0;
    for (int k = 0; k < bytes; k++)
        number |= (uint64_t)at[k] << 8 * k;
    return number;
}

/* -- one end of a line -------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    Py_ssize_t sent, taken, acknowledged, reported, unreported_bytes;
    unsigned int to, of; /* the routes of what is sent and of what is taken */
    char keeps, gap;     /* are frames kept until acknowledged; do later frames wait for the next one */
    PyObject **kept;     /* a ring of the last frames that were sent, up to number `sent` */
    Py_ssize_t first, count, room, kept_bytes;
} Ends;

static int ends_init(Ends *line, PyObject *args, PyObject *named)
{
    static char *names[] = {"to", "of", "keeps", NULL};
    int keeps;
    if (!PyArg_ParseTupleAndKeywords(args, named, "IIp", names, &line->to, &line->of, &keeps))
        return -1;
    line->keeps = (char)keeps;
    return 0;
}

/* forget the oldest frames, so many of them */
static void forget(Ends *line, Py_ssize_t frames)
{
    while (frames-- > 0 && line->count > 0) {
        PyObject *frame = line->kept[line->first];
        line->first = (line->first + 1) % line->room;
        line->count--;
        line->kept_bytes -= PyBytes_Size(frame);
        Py_DECREF(frame);
    }
}

static int keep(Ends *line, PyObject *frame)
{
    if (line->count == line->room) {
        Py_ssize_t room = line->room > 0 ? 2 * line->room : 16;
        PyObject **kept = PyMem_Malloc((size_t)room * sizeof *kept);
        if (kept == NULL) {
            PyErr_NoMemory();
            return 0;
        }
        for (Py_ssize_t k = 0; k < line->count; k++)
            kept[k] = line->kept[(line->first + k) % line->room];
        PyMem_Free(line->kept);
        line->kept = kept, line->first = 0, line->room = room;
    }
    Py_INCREF(frame);
    line->kept[(line->first + line->count++) % line->room] = frame;
    line->kept_bytes += PyBytes_Size(frame);
    return 1;
}

/* count a frame as sent: it says how far this end has come */
static int count(Ends *line, PyObject *frame)
{
    if (line->sent >= MOST_NUMBERS) {
        PyErr_SetString(PyExc_OverflowError, "a line has numbers for 2^32 frames");
        return 0;
    }
    if (line->keeps && !keep(line, frame))
        return 0;
    line->sent++;
    line->reported = line->taken, line->unreported_bytes = 0;
    return 1;
}

static PyObject *ends_pack(Ends *line, PyObject *payload)
{
    char *body;
    Py_ssize_t size, sequence = line->sent + 1;
    if (PyBytes_AsStringAndSize(payload, &body, &size) < 0)
        return NULL;
    int width = sequence >> 16 || line->taken >> 16 ? WIDE : NARROW;
    PyObject *frame = PyBytes_FromStringAndSize(NULL, NUMBERS + 2 * width + size);
    if (frame == NULL)
        return NULL;
    unsigned char *at = (unsigned char *)PyBytes_AsString(frame);
    at[0] = width == WIDE ? DATA | WIDENED : DATA;
    put(at + KIND, line->to, ROUTE);
    put(at + NUMBERS, (uint64_t)sequence, width);
    put(at + NUMBERS + width, (uint64_t)line->taken, width);
    memcpy(at + NUMBERS + 2 * width, body, (size_t)size);
    if (!count(line, frame))
        Py_CLEAR(frame);
    return frame;
}

static PyObject *ends_count(Ends *line, PyObject *frame)
{
    if (!PyBytes_Check(frame)) {
        PyErr_SetString(PyExc_TypeError, "a frame is bytes");
        return NULL;
    }
    if (!count(line, frame))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *ends_pass(Ends *line, PyObject *number)
{
    Py_ssize_t length = PyLong_AsSsize_t(number);
    if (length == -1 && PyErr_Occurred())
        return NULL;
    line->sent++;
    return PyLong_FromSsize_t(length + NUMBERS + 2 * (line->sent >> 16 || line->taken >> 16 ? WIDE : NARROW));
}

static int acknowledge(Ends *line, Py_ssize_t upto)
{
    if (upto <= line->acknowledged || upto > line->sent)
        return 0;
    line->acknowledged = upto;
    forget(line, line->count - (line->sent - upto));
    return 1;
}

static PyObject *ends_open(Ends *line, PyObject *frame)
{
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(frame, &bytes, &size) < 0)
        return NULL;
    const unsigned char *at = (const unsigned char *)bytes;
    if (line->gap || size < NUMBERS || (at[0] & ~WIDENED) != DATA)
        Py_RETURN_NONE;
    int width = at[0] & WIDENED ? WIDE : NARROW, start = NUMBERS + 2 * width;
    if (size < start || get(at + KIND, ROUTE) != line->of)
        Py_RETURN_NONE;
    Py_ssize_t sequence = (Py_ssize_t)get(at + NUMBERS, width), upto = (Py_ssize_t)get(at + NUMBERS + width, width);
    if (sequence != line->taken + 1 || upto > line->sent)
        Py_RETURN_NONE;
    PyObject *payload;
    if (size - start <= COPIED)
        payload = PyBytes_FromStringAndSize(bytes + start, size - start);
    else {
        PyObject *view = PyMemoryView_FromObject(frame);
        payload = view == NULL ? NULL : PySequence_GetSlice(view, start, size);
        Py_XDECREF(view);
    }
    if (payload == NULL)
        return NULL;
    line->taken = sequence;
    line->unreported_bytes += size;
    acknowledge(line, upto);
    return payload;
}

static PyObject *ends_acknowledge(Ends *line, PyObject *number)
{
    Py_ssize_t upto = PyLong_AsSsize_t(number);
    if (upto == -1 && PyErr_Occurred())
        return NULL;
    return PyBool_FromLong(acknowledge(line, upto));
}

static PyObject *ends_owes_ack(Ends *line, PyObject *Py_UNUSED(nothing))
{
    return PyBool_FromLong(line->taken - line->reported >= ACK_EVERY || line->unreported_bytes >= ACK_BYTES);
}

static PyObject *ends_unacknowledged(Ends *line, PyObject *Py_UNUSED(nothing))
{
    PyObject *all = PyList_New(line->count);
    for (Py_ssize_t k = 0; all != NULL && k < line->count; k++) {
        PyObject *frame = line->kept[(line->first + k) % line->room];
        PyObject *pair = Py_BuildValue("nO", line->sent - line->count + 1 + k, frame);
        if (pair == NULL || PyList_SetItem(all, k, pair) < 0)
            Py_CLEAR(all);
    }
    return all;
}

static PyObject *ends_forget(Ends *line, PyObject *Py_UNUSED(nothing))
{
    forget(line, line->count);
    Py_RETURN_NONE;
}

static void ends_dealloc(Ends *line)
{
    PyTypeObject *type = Py_TYPE((PyObject *)line);
    forget(line, line->count);
    PyMem_Free(line->kept);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(line);
    Py_DECREF(type);
}

static PyMethodDef ends_methods[] = {
    {"pack", (PyCFunction)ends_pack, METH_O, "The next frame to the peer, with this payload."},
    {"count", (PyCFunction)ends_count, METH_O, "Count a frame as the next one to the peer."},
    {"pass_by", (PyCFunction)ends_pass, METH_O, "Count a message that needs no frame; the bytes of the frame it spares."},
    {"open", (PyCFunction)ends_open, METH_O, "The payload of a frame that is simply the next one, else None."},
    {"acknowledge", (PyCFunction)ends_acknowledge, METH_O, "Forget the frames up to this one; False if known."},
    {"owes_ack", (PyCFunction)ends_owes_ack, METH_NOARGS, "True when the peer must be told what has arrived."},
    {"unacknowledged", (PyCFunction)ends_unacknowledged, METH_NOARGS, "The frames that are kept, by number."},
    {"forget", (PyCFunction)ends_forget, METH_NOARGS, "Forget the frames that are kept."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef ends_members[] = {
    {"sent", T_PYSSIZET, offsetof(Ends, sent), 0, NULL},
    {"taken", T_PYSSIZET, offsetof(Ends, taken), 0, NULL},
    {"acknowledged", T_PYSSIZET, offsetof(Ends, acknowledged), READONLY, NULL},
    {"reported", T_PYSSIZET, offsetof(Ends, reported), 0, NULL},
    {"unreported_bytes", T_PYSSIZET, offsetof(Ends, unreported_bytes), 0, NULL},
    {"kept_bytes", T_PYSSIZET, offsetof(Ends, kept_bytes), READONLY, NULL},
    {"to", T_UINT, offsetof(Ends, to), READONLY, NULL},
    {"of", T_UINT, offsetof(Ends, of), READONLY, NULL},
    {"gap", T_BOOL, offsetof(Ends, gap), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot ends_slots[] = {
    {Py_tp_init, ends_init},       {Py_tp_dealloc, ends_dealloc}, {Py_tp_methods, ends_methods},
    {Py_tp_members, ends_members}, {Py_tp_doc, "See ends.py."},   {0, NULL},
};

static PyType_Spec ends_spec = {
    "colonnade.net._line.Ends", sizeof(Ends), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, ends_slots,
};

/* -- a stream of bytes -------------------------------------------------------------------------------------- */

enum { SHORT = 2, LONG = 4, BITS = 15, MARK = 1 << BITS }; /* a length, as in framing.py */

static PyObject *split(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *stream;
    char *data;
    Py_ssize_t size, limit, at = 0, need = SHORT;
    /* not "y#": a file that is compiled with Python 3.13 could then not be called by 3.11 and 3.12 */
    if (!PyArg_ParseTuple(args, "Sn", &stream, &limit) || PyBytes_AsStringAndSize(stream, &data, &size) < 0)
        return NULL;
    PyObject *frames = PyList_New(0);
    if (frames == NULL)
        return NULL;
    while (size - at >= SHORT) {
        const unsigned char *from = (const unsigned char *)data + at;
        Py_ssize_t length = (Py_ssize_t)get(from, SHORT), before = SHORT;
        if (length & MARK) {
            before = LONG;
            if (size - at < LONG) {
                need = LONG;
                break;
            }
            length += ((Py_ssize_t)get(from + SHORT, SHORT) << BITS) - MARK;
        }
        if (length > limit) {
            need = -length;
            break;
        }
        if (length > size - at - before) {
            need = before + length;
            break;
        }
        PyObject *frame = PyBytes_FromStringAndSize(data + at + before, length);
        int added = frame == NULL ? -1 : PyList_Append(frames, frame);
        Py_XDECREF(frame);
        if (added < 0) {
            Py_DECREF(frames);
            return NULL;
        }
        at += before + length;
    }
    return Py_BuildValue("Nnn", frames, at, need);
}

/* -- TLS over a socket -------------------------------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    int socket;
    PyObject *decrypt, *encrypt;   /* the TLS object's read and write */
    PyObject *arrived, *leaving;   /* what it reads from and writes to, in memory */
    PyObject *incomplete, *record; /* what is raised where half a record has come; the most bytes of one */
} Sealed;

static int sealed_init(Sealed *line, PyObject *args, PyObject *named)
{
    PyObject *tls, *arrived, *leaving, *incomplete;
    if (line->decrypt != NULL || named != NULL) {
        PyErr_SetString(PyExc_TypeError, "this is made once, of a socket and a TLS object");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "iOOOO", &line->socket, &tls, &arrived, &leaving, &incomplete))
        return -1;
    line->arrived = Py_NewRef(arrived), line->leaving = Py_NewRef(leaving), line->incomplete = Py_NewRef(incomplete);
    line->encrypt = PyObject_GetAttrString(tls, "write");
    line->record = PyLong_FromLong(RECORD);
    line->decrypt = line->encrypt == NULL || line->record == NULL ? NULL : PyObject_GetAttrString(tls, "read");
    return line->decrypt == NULL ? -1 : 0;
}

static int sealed_traverse(Sealed *line, visitproc visit, void *arg)
{
    Py_VISIT(line->decrypt);
    Py_VISIT(line->encrypt);
    Py_VISIT(line->arrived);
    Py_VISIT(line->leaving);
    Py_VISIT(line->incomplete);
    Py_VISIT(line->record);
    Py_VISIT(Py_TYPE((PyObject *)line));
    return 0;
}

static int sealed_clear(Sealed *line)
{
    Py_CLEAR(line->decrypt);
    Py_CLEAR(line->encrypt);
    Py_CLEAR(line->arrived);
    Py_CLEAR(line->leaving);
    Py_CLEAR(line->incomplete);
    Py_CLEAR(line->record);
    return 0;
}

static void sealed_dealloc(Sealed *line)
{
    PyTypeObject *type = Py_TYPE((PyObject *)line);
    PyObject_GC_UnTrack(line);
    sealed_clear(line);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(line);
    Py_DECREF(type);
}

static int whole(const Sealed *line)
{
    if (line->decrypt != NULL)
        return 1;
    PyErr_SetString(PyExc_ValueError, "there is no TLS object");
    return 0;
}

/* how many bytes wait in memory to be decrypted; -1 and an exception if that cannot be said */
static Py_ssize_t pending(const Sealed *line)
{
    PyObject *number = PyObject_GetAttrString(line->arrived, "pending");
    Py_ssize_t bytes = number == NULL ? -1 : PyLong_AsSsize_t(number);
    Py_XDECREF(number);
    return bytes;
}

/* give all records that have come to `take`: true, or false after the last one; NULL and an exception if that fails */
static PyObject *decrypt_all(const Sealed *line, PyObject *take)
{
    Py_ssize_t left;
    while ((left = pending(line)) > 0) {
        PyObject *record = PyObject_CallFunctionObjArgs(line->decrypt, line->record, NULL);
        if (record == NULL) {
            if (!PyErr_ExceptionMatches(line->incomplete))
                return NULL;
            PyErr_Clear();
            Py_RETURN_TRUE;
        }
        int last = PyBytes_Size(record) == 0;
        PyObject *taken = last ? Py_NewRef(Py_None) : PyObject_CallFunctionObjArgs(take, record, NULL);
        Py_DECREF(record);
        if (taken == NULL)
            return NULL;
        Py_DECREF(taken);
        if (last)
            Py_RETURN_FALSE;
    }
    if (left < 0)
        return NULL;
    Py_RETURN_TRUE;
}

static PyObject *sealed_read(Sealed *line, PyObject *take)
{
    /* one for all lines of a thread: what is in it is copied before anybody else can have the interpreter, and so
       into bytes: to make a view may run the garbage collector, and any code */
    static _Thread_local char room[1 << 17];
    if (!whole(line))
        return NULL;
    ssize_t size = read(line->socket, room, sizeof room);
    if (size < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        return PyErr_SetFromErrno(PyExc_OSError);
    if (size <= 0)
        return PyBool_FromLong(size < 0);
    PyObject *came = PyBytes_FromStringAndSize(room, size);
    PyObject *stored = came == NULL ? NULL : PyObject_CallMethod(line->arrived, "write", "O", came);
    Py_XDECREF(came);
    Py_XDECREF(stored);
    return stored == NULL ? NULL : decrypt_all(line, take);
}

static PyObject *sealed_write(Sealed *line, PyObject *data)
{
    char *bytes;
    Py_ssize_t size;
    if (!whole(line) || PyBytes_AsStringAndSize(data, &bytes, &size) < 0)
        return NULL;
    for (Py_ssize_t done = 0; done < size;) {
        PyObject *part = done == 0 ? Py_NewRef(data) : PyBytes_FromStringAndSize(bytes + done, size - done);
        PyObject *number = part == NULL ? NULL : PyObject_CallFunctionObjArgs(line->encrypt, part, NULL);
        Py_ssize_t written = number == NULL ? -1 : PyLong_AsSsize_t(number);
        Py_XDECREF(part);
        Py_XDECREF(number);
        if (written < 0)
            return NULL;
        done += written;
    }
    PyObject *encrypted = PyObject_CallMethod(line->leaving, "read", NULL);
    if (encrypted == NULL || PyBytes_AsStringAndSize(encrypted, &bytes, &size) < 0) {
        Py_XDECREF(encrypted);
        return NULL;
    }
    ssize_t sent = write(line->socket, bytes, (size_t)size);
    if (sent <= 0) /* no room, or an error, which whoever sends the rest will meet again */
        return encrypted;
    PyObject *rest = PyBytes_FromStringAndSize(bytes + sent, size - sent);
    Py_DECREF(encrypted);
    return rest;
}

static PyMethodDef sealed_methods[] = {
    {"read", (PyCFunction)sealed_read, METH_O, "Give what has come to a function, decrypted; False at the end."},
    {"write", (PyCFunction)sealed_write, METH_O, "Encrypt and send; what there was no room for."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot sealed_slots[] = {
    {Py_tp_init, sealed_init},         {Py_tp_dealloc, sealed_dealloc},
    {Py_tp_traverse, sealed_traverse}, {Py_tp_clear, sealed_clear},
    {Py_tp_methods, sealed_methods},   {Py_tp_doc, "See stream/sealed.py."},
    {0, NULL},
};

static PyType_Spec sealed_spec = {
    "colonnade.net._line.Sealed", sizeof(Sealed), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, sealed_slots,
};

/* -- the module --------------------------------------------------------------------------------------------- */

static PyMethodDef functions[] = {
    {"split", split, METH_VARARGS, "The whole frames in a stream of bytes; see framing.py."},
    {NULL, NULL, 0, NULL},
};

static int add_type(PyObject *module, PyType_Spec *spec, const char *name)
{
    PyObject *type = PyType_FromSpec(spec);
    int added = type == NULL ? -1 : PyModule_AddObjectRef(module, name, type);
    Py_XDECREF(type);
    return added;
}

static int execute(PyObject *module)
{
    return add_type(module, &ends_spec, "Ends") < 0 ? -1 : add_type(module, &sealed_spec, "Sealed");
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, NO_LOCK {0, NULL}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_line", "Frames of a line: their numbers, and cut out of a stream.", 0, functions, slots,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__line(void)
{
    return PyModuleDef_Init(&definition);
}
