/* What bay_server_main and bay_agent_main do as a program: print, take signals, end the process. No
 * other place of the library does. */
#ifndef SDK_PROGRAM_H
#define SDK_PROGRAM_H

#include "sdk/registration.h"

enum { PROGRAM_FAILED = 1, PROGRAM_USAGE = 2, PROGRAM_ADDRESS_BYTES = 256 };

/* Warnings and errors go to standard error; a closed pipe is an error, not a signal. */
void program_begin(void);

/* SIGTERM and SIGINT call `stop`, which must be fit for signal handlers, until program_leave. One
 * object of the process at a time. */
void program_take_signals(void (*stop)(void *object), void *object);
void program_leave_signals(void);

/* ADDRESS[:PORT] with the port filled in (8080). False, and said on standard error, when it is
 * none. */
bool program_address(bay_str name, const char *address, char out[PROGRAM_ADDRESS_BYTES]);

/* "NAME: listening on SCHEME://HOST:PORT/PATH", on standard error. */
void program_print_address(bay_str name, const char *scheme, bay_str address, uint16_t port,
                           bay_str path);

/* Says on standard error what went wrong at registration; `errors` NULL or without any: `diag`'s
 * text. Returns PROGRAM_FAILED. */
int program_print_errors(const registration_errors *errors, bool is_out_of_memory,
                         const bay_diag *diag);

/* What serving ended with, as an exit status. BAY_ERR_TIMEOUT: a thread still works on the object's
 * memory, so the process ends here, at once. */
int program_ended(bay_str name, bay_err err, const bay_diag *diag);

#endif
