/* What a module says of the interpreter lock. Ours need none: their data are arguments, and what they keep is const, of
   one thread, or of an object that one party alone uses. Without these words a Python that has no lock switches one on. */
#ifdef Py_GIL_DISABLED
#define NO_LOCK {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#else
#define NO_LOCK
#endif
