#pragma once
#include <sqlite3.h>

// The header defines it by a cast that Swift does not import: SQLite makes a copy of the value.
static inline sqlite3_destructor_type shim_transient(void) { return SQLITE_TRANSIENT; }
