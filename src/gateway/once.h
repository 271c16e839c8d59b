#ifndef GATEWAY_ONCE_H
#define GATEWAY_ONCE_H

#include "call/once.h"

/* Sets the functions; the owner sets the rest. */
void gateway_once_init(call_once *self);

#endif
