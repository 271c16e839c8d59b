/* What a connection of HTTP/2 holds once it is idle. */
#include "http2_rig.h"

#include "base/mem.h"
#include "http/http2.h"

/* An allocator that counts, and paints what it gives of the size of a frame's buffer: what still
 * has its paint was never touched, and takes no memory of the machine. */
enum { FRAME_BYTES = 9 + 1 + 16384, SLACK = 128, BUFFERS = 4, PAINT = 0xa5 };

static struct {
    size_t bytes;
    const unsigned char *buffers[BUFFERS];
    size_t count;
} seen;

typedef struct block {
    size_t bytes;
    _Alignas(16) unsigned char at[];
} block;

static void *counted_alloc(size_t bytes, void *user)
{
    (void)user;
    block *made = malloc(sizeof(block) + bytes);
    if (made == NULL) {
        return NULL;
    }
    made->bytes = bytes;
    seen.bytes += bytes;
    if (bytes >= FRAME_BYTES && bytes < FRAME_BYTES + SLACK && seen.count < BUFFERS) {
        memset(made->at, PAINT, bytes);
        seen.buffers[seen.count++] = made->at;
    }
    return made->at;
}

static void counted_release(void *old, void *user)
{
    (void)user;
    if (old != NULL) {
        block *was = CONTAINER_OF((unsigned char *)old, block, at[0]);
        seen.bytes -= was->bytes;
        free(was);
    }
}

static void *counted_resize(void *old, size_t bytes, void *user)
{
    void *moved = counted_alloc(bytes, user);
    if (moved != NULL && old != NULL) {
        size_t before = CONTAINER_OF((unsigned char *)old, block, at[0])->bytes;
        memcpy(moved, old, before < bytes ? before : bytes);
        counted_release(old, user);
    }
    return moved;
}

static const mem_hooks counting = {counted_alloc, counted_resize, counted_release, NULL};

/* Bodies do not go through nghttp2's own buffer, which lives as long as the connection. */
static void test_large_replies_leave_nothing_behind(void **state)
{
    (void)state;
    enum { LEN = 200 * 1024, PAGE = 4096 };
    static char bytes[LEN];
    rig on;
    peer client;
    memset(&seen, 0, sizeof(seen));
    memset(bytes, 'x', sizeof(bytes));
    rig_init(&on, NULL);
    peer_open(&client, &on);
    bay_str body = {bytes, LEN};
    peer_stream *echo = peer_ask(&client, "POST", "/echo", NULL, 0, &body);
    PEER_UNTIL(&client, &on, echo->is_closed);
    assert_int_equal(echo->body.len, LEN);
    assert_int_equal(seen.count, 1); /* else the library is another one, and this test blind */
    size_t touched = 0;
    for (size_t i = PAGE; i < FRAME_BYTES; i++) {
        touched += seen.buffers[0][i] != PAINT;
    }
    assert_int_equal(touched, 0);
    peer_close(&client);
    rig_fini(&on);
    assert_int_equal(seen.bytes, 0);
}

static void on_tell(void *user, http_exchange *exchange)
{
    rig *self = user;
    char value[32];
    (void)snprintf(value, sizeof(value), "%d", self->requests++);
    const http_field field = {STR("x-tell"), str_of(value)};
    http_exchange_reply(exchange, 200, &field, 1, STR(""));
}

/* Fields of ours that change with each reply are remembered to refer to, but not many. */
static void test_fields_are_remembered_within_a_bound(void **state)
{
    (void)state;
    enum { FEW = 40, MANY = 120, SLACK_BYTES = 512 };
    static const http_handler handler = {
        .request = on_tell, .closed = rig_closed, .drained = rig_on_drained};
    rig on = {0};
    peer client;
    bay_diag diag;
    http_server_options options = {
        .limits = http_server_default_limits, .handler = &handler, .user = &on};
    size_t held[2] = {0, 0};
    assert_int_equal(loop_new(&on.loop), BAY_OK);
    assert_int_equal(http_server_new(on.loop, &options, &on.server), BAY_OK);
    assert_int_equal(http_server_listen(on.server, STR("127.0.0.1:0"), &diag), BAY_OK);
    peer_open(&client, &on);
    for (int i = 0; i < MANY; i++) {
        peer_stream *one = peer_get(&client, "/");
        PEER_UNTIL(&client, &on, one->is_closed);
        assert_true(buf_has(&one->head, "x-tell: "));
        buf_fini(&one->head);
        held[i >= FEW] = seen.bytes - client.raw.got.cap;
    }
    assert_true(held[1] < held[0] + SLACK_BYTES);
    peer_close(&client);
    rig_fini(&on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_replies_leave_nothing_behind),
        cmocka_unit_test(test_fields_are_remembered_within_a_bound),
    };
    mem_set_hooks(&counting);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
