/* How a server or agent departs from its revision, by messages that a well-behaved client sends and some that none
 * should: conformance.def says what is looked at. Nothing is called that does something: no tool that exists, no
 * message to an agent. */
#ifndef CLI_CONFORMANCE_H
#define CLI_CONFORMANCE_H

#include "cli/arguments.h"
#include "trust/findings.h"

enum {
    CLI_CONFORMANCE_PAGES = 100,   /* of one list; more have no end */
    CLI_CONFORMANCE_ITEMS = 10000, /* looked at on one page */
};

/* Of the TARGET. What could not be done was said on stderr. */
cli_exit cli_conformance_run(const cli_arguments *arguments, bay_str server, trust_findings *out,
                             trust_silences *silences);

#endif
