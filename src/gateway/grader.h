/* Grades one server (trust/grade.h) where its configuration asks for a least grade: when its lists have been read or
 * changed, when its contracts were run, when the lock or an approval changed, and after a reload. The work is done on a
 * thread of the pool; below the least grade, and until it is known, all items of the server are held. It lives on the
 * loop of its server; there is one in a process. */
#ifndef GATEWAY_GRADER_H
#define GATEWAY_GRADER_H

#include "gateway/worker.h"

typedef struct grader grader;

/* Those of a worker, after its upstreams or their settings became others. */
void worker_graders_set(worker *self);
/* Something that counts has changed: grades once all lists have been read. NULL is fine. */
void grader_run(grader *self);
void grader_free(grader *self); /* NULL is fine */

/* Is the server held only because it has not been graded yet? Any loop. */
bool worker_upstream_awaits_grade(const worker_upstream *self);
/* Is it held for its grade? */
bool gateway_grade_holds(trust_pins *pins, bay_str server);
/* The member "grade" of a server's status, if it has one. */
void gateway_grade_write(trust_pins *pins, bay_str server, json_writer *out);

#endif
