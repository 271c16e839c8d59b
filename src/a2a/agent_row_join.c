/* Joins a row and its blocks. In place of a part that is in a block the row has, between two bytes
 * 1 (which JSON cannot contain):
 *
 *     a OVERFLOW BLOCKS BYTES    the beginning of an artifact's parts
 *     t OVERFLOW PLACE COUNT     texts of a block, with commas between them
 *
 * In a block of texts each follows its length (8 bytes, big endian). */
#include "a2a/agent_internal.h"
#include "base/bytes.h"
#include "base/mem.h"

enum { MARK = 1, NUMBERS = 3 };

/* ---- writing */

void agent_write_parts(const agent_artifact *artifact, buf *out)
{
    const agent_overflow *overflow = artifact->overflow;
    size_t from = 0;
    if (agent_overflow_is_apart(overflow)) {
        from = overflow->cut;
        buf_printf(out, "%ca %llu %u %zu%c", MARK, (unsigned long long)overflow->number,
                   overflow->blocks, overflow->cut, MARK);
    }
    buf_str(out, str_from(buf_view(&artifact->parts), from));
}

void agent_write_place(const agent_overflow *overflow, size_t place, uint32_t count, buf *out)
{
    buf_printf(out, "%ct %llu %zu %u%c", MARK, (unsigned long long)overflow->number, place, count,
               MARK);
}

/* ---- reading */

typedef struct apart {
    char kind;
    uint64_t numbers[NUMBERS];
} apart;

static bay_err read_mark(bay_str text, apart *out)
{
    if (text.len < 2 || (text.at[0] != 'a' && text.at[0] != 't') || text.at[1] != ' ') {
        return BAY_ERR_SYNTAX;
    }
    out->kind = text.at[0];
    text = str_from(text, 2);
    for (int i = 0; i < NUMBERS; i++) {
        const char *end = text.len > 0 ? memchr(text.at, ' ', text.len) : NULL;
        size_t len = end != NULL ? (size_t)(end - text.at) : text.len;
        if ((end == NULL) != (i == NUMBERS - 1) ||
            !str_uint(str_head(text, len), &out->numbers[i])) {
            return BAY_ERR_SYNTAX;
        }
        text = str_from(text, end != NULL ? len + 1 : len);
    }
    return BAY_OK;
}

static const a2a_overflow_block *find_block(const a2a_kept_task *from, uint64_t overflow,
                                            uint64_t number)
{
    size_t low = 0;
    size_t high = from->block_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const a2a_overflow_block *block = &from->blocks[middle];
        if (block->overflow == overflow && block->number == number) {
            return block;
        }
        bool is_before =
            block->overflow < overflow || (block->overflow == overflow && block->number < number);
        low = is_before ? middle + 1 : low;
        high = is_before ? high : middle;
    }
    return NULL;
}

static bay_err add_link(agent_row_join *self, agent_link link)
{
    if (self->count == self->cap) {
        size_t cap = self->cap == 0 ? 16 : self->cap * 2;
        agent_link *links = mem_resize(self->links, cap * sizeof(*links));
        if (links == NULL) {
            return BAY_ERR_NOMEM;
        }
        self->links = links;
        self->cap = cap;
    }
    link.at = self->text.len;
    self->links[self->count++] = link;
    return BAY_OK;
}

static bay_err add_artifact(agent_row_join *self, const a2a_kept_task *from, const apart *what)
{
    uint64_t blocks = what->numbers[1];
    uint64_t bytes = what->numbers[2];
    size_t start = self->text.len;
    if (blocks == 0 || blocks > from->block_count || bytes == 0) {
        return BAY_ERR_SYNTAX;
    }
    bay_err err = add_link(self, (agent_link){.overflow = what->numbers[0],
                                              .blocks = (uint32_t)blocks,
                                              .cut = (size_t)bytes});
    for (uint64_t i = 0; err == BAY_OK && i < blocks; i++) {
        const a2a_overflow_block *block = find_block(from, what->numbers[0], i);
        if (block == NULL) {
            return BAY_ERR_SYNTAX;
        }
        buf_str(&self->text, block->bytes);
        err = self->text.err;
    }
    return err == BAY_OK && self->text.len - start != bytes ? BAY_ERR_SYNTAX : err;
}

static bay_err add_texts(agent_row_join *self, const a2a_kept_task *from, const apart *what)
{
    uint64_t place = what->numbers[1];
    uint64_t count = what->numbers[2];
    const a2a_overflow_block *block = find_block(from, what->numbers[0], 0);
    if (block == NULL || count == 0 || count > UINT32_MAX || place > UINT32_MAX - count) {
        return BAY_ERR_SYNTAX;
    }
    bay_str rest = block->bytes;
    bay_err err = BAY_OK;
    for (uint64_t i = 0; err == BAY_OK && i < place + count; i++) {
        uint64_t len = rest.len >= BYTES_U64 ? bytes_get_u64(rest.at) : UINT64_MAX;
        if (rest.len < BYTES_U64 || len > rest.len - BYTES_U64) {
            return BAY_ERR_SYNTAX;
        }
        if (i >= place) {
            if (i > place) {
                buf_char(&self->text, ',');
            }
            err = add_link(
                self, (agent_link){.overflow = what->numbers[0], .place = (size_t)i, .blocks = 1});
            buf_append(&self->text, rest.at + BYTES_U64, (size_t)len);
        }
        rest = str_from(rest, BYTES_U64 + (size_t)len);
    }
    return err == BAY_OK ? self->text.err : err;
}

static bay_err splice(agent_row_join *self, const a2a_kept_task *from)
{
    bay_str rest = from->row;
    const char *begin;
    while ((begin = rest.len > 0 ? memchr(rest.at, MARK, rest.len) : NULL) != NULL) {
        apart read;
        buf_append(&self->text, rest.at, (size_t)(begin - rest.at));
        rest = str_from(rest, (size_t)(begin - rest.at) + 1);
        const char *end = rest.len > 0 ? memchr(rest.at, MARK, rest.len) : NULL;
        size_t len = end != NULL ? (size_t)(end - rest.at) : 0;
        bay_err err = read_mark(str_head(rest, len), &read);
        if (err == BAY_OK) {
            err = read.kind == 'a' ? add_artifact(self, from, &read) : add_texts(self, from, &read);
        }
        if (err != BAY_OK) {
            return err;
        }
        rest = str_from(rest, len + 1);
    }
    buf_str(&self->text, rest);
    return self->text.err;
}

bay_err agent_row_join_make(const a2a_kept_task *from, agent_row_join *out)
{
    *out = (agent_row_join){.count = 0};
    /* A text occurs in a row at most twice: as a message, and as that of the status. */
    size_t most = from->row.len;
    for (size_t i = 0; i < from->block_count; i++) {
        most += from->blocks[i].bytes.len * 2;
    }
    buf_init(&out->text, most);
    if (from->row.len == 0 || memchr(from->row.at, MARK, from->row.len) == NULL) {
        return BAY_OK;
    }
    bay_err err = splice(out, from);
    return err == BAY_ERR_LIMIT ? BAY_ERR_SYNTAX : err;
}

void agent_row_join_fini(agent_row_join *self)
{
    buf_fini(&self->text);
    mem_free(self->links);
}

const agent_link *agent_row_join_find(const agent_row_join *self, const char *at)
{
    size_t low = 0;
    size_t high = self->count;
    if (self->text.at == NULL || at < self->text.at) {
        return NULL;
    }
    size_t place = (size_t)(at - self->text.at);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (self->links[middle].at == place) {
            return &self->links[middle];
        }
        bool is_before = self->links[middle].at < place;
        low = is_before ? middle + 1 : low;
        high = is_before ? high : middle;
    }
    return NULL;
}
