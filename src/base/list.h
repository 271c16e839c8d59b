/* An intrusive doubly linked list: the link is a member of the object, so adding and removing
 * cannot fail. A zeroed or removed link is a ring of one. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"

typedef struct list_link {
    struct list_link *next;
    struct list_link *prev;
} list_link;

typedef struct list {
    list_link head;
} list;

static inline void list_init(list *self)
{
    self->head.next = self->head.prev = &self->head;
}

static inline bool list_is_empty(const list *self)
{
    return self->head.next == &self->head;
}

static inline void list_push(list *self, list_link *link) /* at the end */
{
    link->prev = self->head.prev;
    link->next = &self->head;
    self->head.prev->next = link;
    self->head.prev = link;
}

static inline bool list_holds(const list_link *link)
{
    return link->next != NULL;
}

static inline void list_remove(list_link *link) /* no effect on a link that is in no list */
{
    if (link->next != NULL) {
        link->prev->next = link->next;
        link->next->prev = link->prev;
        link->next = link->prev = NULL;
    }
}

static inline list_link *list_first(const list *self) /* NULL when empty */
{
    return list_is_empty(self) ? NULL : self->head.next;
}

static inline list_link *list_pop(list *self) /* NULL when empty */
{
    list_link *link = list_first(self);
    if (link != NULL) {
        list_remove(link);
    }
    return link;
}

/* Walks `self`; the body may remove (and free) the current object, but no other. */
#define LIST_EACH(link, self)                                                                      \
    for (list_link *link = (self)->head.next, *link##_next = link->next; link != &(self)->head;    \
         link = link##_next, link##_next = link->next)

#endif
