/* Who is blocked: as the rows say, also after they changed; and as they said when they cannot be read. */
#include <openssl/evp.h> /* without it there are no digests */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "auth/block.h"
#include "base/str.h"
#include "gateway/blocks.h"

typedef struct rig {
    loop *loop;
    store *rows;
    gateway_blocks *blocks;
    bool is_done;
} rig;

static void on_done(void *user, const store_result *result)
{
    assert_int_equal(result->err, BAY_OK);
    ((rig *)user)->is_done = true;
}

static void on_closed(void *user)
{
    ((rig *)user)->is_done = true;
}

static void wait_for(rig *self)
{
    while (!self->is_done) {
        (void)loop_turn(self->loop, 10);
    }
    self->is_done = false;
}

static void block(rig *self, const char *subject, bool is_blocked)
{
    char key[DIGEST_TEXT_BYTES + 1];
    assert_int_equal(block_key(str_of(subject), key), BAY_OK);
    store_put_request request = {.table = STR(BLOCK_TABLE),
                                 .key = str_of(key),
                                 .value = str_of(subject),
                                 .expected = STORE_ANY};
    bay_err err = is_blocked ? store_put(self->rows, &request, on_done, self)
                             : store_remove(self->rows, STR(BLOCK_TABLE), str_of(key), STORE_ANY,
                                            on_done, self);
    assert_int_equal(err, BAY_OK);
    wait_for(self);
}

/* Operations end in the order of their start. */
static void refresh(rig *self)
{
    gateway_blocks_refresh(self->blocks);
    block(self, "last", true);
    gateway_blocks_refresh(self->blocks);
    block(self, "last", true);
}

static void expect(const rig *self, const char *subject, blocks_answer wanted)
{
    const auth_principal *who = NULL;
    principal_parts parts = {.proof = PRINCIPAL_KEY, .subject = str_of(subject)};
    assert_int_equal(principal_new(&parts, &who), BAY_OK);
    assert_int_equal(gateway_blocks_have(self->blocks, who), wanted);
    principal_unref(who);
}

static void open_rig(rig *self)
{
    *self = (rig){.loop = NULL};
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    assert_int_equal(store_open_memory(self->loop, NULL, &self->rows), BAY_OK);
}

static void close_store(rig *self)
{
    store_close(self->rows, on_closed, self);
    wait_for(self);
}

static void close_rig(rig *self)
{
    gateway_blocks_free(self->blocks);
    if (!store_is_closed(self->rows)) {
        close_store(self);
    }
    store_free(self->rows);
    loop_free(self->loop);
}

static void count(void *user)
{
    ++*(int *)user;
}

static void who_watches_hears_of_it(void **state)
{
    (void)state;
    rig self;
    int reads = 0;
    open_rig(&self);
    assert_int_equal(gateway_blocks_new(self.loop, self.rows, &self.blocks), BAY_OK);
    gateway_blocks_watch(self.blocks, count, &reads);
    gateway_blocks_refresh(self.blocks);
    block(&self, "mallory", true);
    assert_int_equal(reads, 0); /* nobody was */
    gateway_blocks_refresh(self.blocks);
    block(&self, "ann", true);
    assert_int_equal(reads, 1);
    close_rig(&self);
}

static void what_the_rows_say_counts(void **state)
{
    (void)state;
    rig self;
    open_rig(&self);
    block(&self, "mallory", true);
    assert_int_equal(gateway_blocks_new(self.loop, self.rows, &self.blocks), BAY_OK);
    expect(&self, "mallory", BLOCKS_YES);
    expect(&self, "ann", BLOCKS_NO);
    expect(&self, "mallor", BLOCKS_NO);
    block(&self, "ann", true);
    expect(&self, "ann", BLOCKS_NO); /* not read yet */
    refresh(&self);
    expect(&self, "ann", BLOCKS_YES);
    expect(&self, "mallory", BLOCKS_YES);
    block(&self, "mallory", false);
    refresh(&self);
    expect(&self, "mallory", BLOCKS_NO);
    expect(&self, "ann", BLOCKS_YES);
    close_rig(&self);
}

static void many_are_read(void **state)
{
    enum { MANY = STORE_READ_ROWS + 200 };
    (void)state;
    rig self;
    char name[32];
    open_rig(&self);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof(name), "caller %d", i);
        block(&self, name, true);
    }
    assert_int_equal(gateway_blocks_new(self.loop, self.rows, &self.blocks), BAY_OK);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof(name), "caller %d", i);
        expect(&self, name, BLOCKS_YES);
    }
    expect(&self, "caller x", BLOCKS_NO);
    close_rig(&self);
}

static void what_cannot_be_read_stays(void **state)
{
    (void)state;
    rig self;
    open_rig(&self);
    block(&self, "mallory", true);
    assert_int_equal(gateway_blocks_new(self.loop, self.rows, &self.blocks), BAY_OK);
    close_store(&self);
    gateway_blocks_refresh(self.blocks);
    expect(&self, "mallory", BLOCKS_YES);
    expect(&self, "ann", BLOCKS_NO);
    close_rig(&self);
}

/* Before anything could be read nobody is known not to be blocked. */
static void unread_rows_let_nobody_in(void **state)
{
    (void)state;
    rig self;
    open_rig(&self);
    close_store(&self);
    assert_int_equal(gateway_blocks_new(self.loop, self.rows, &self.blocks), BAY_OK);
    expect(&self, "ann", BLOCKS_UNKNOWN);
    close_rig(&self);
}

/* Its answer comes when nobody asks any more. */
static void it_may_go_while_it_reads(void **state)
{
    (void)state;
    rig self;
    open_rig(&self);
    assert_int_equal(gateway_blocks_new(self.loop, self.rows, &self.blocks), BAY_OK);
    gateway_blocks_refresh(self.blocks);
    gateway_blocks_free(self.blocks);
    self.blocks = NULL;
    block(&self, "ann", true);
    close_rig(&self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_watches_hears_of_it),
        cmocka_unit_test(what_the_rows_say_counts),
        cmocka_unit_test(many_are_read),
        cmocka_unit_test(what_cannot_be_read_stays),
        cmocka_unit_test(unread_rows_let_nobody_in),
        cmocka_unit_test(it_may_go_while_it_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
