/* The HTTP/2 server, fed over a connection: whatever the frames, each exchange is closed once and
 * nothing is left. The first byte says how the rest is cut and whether a preface and SETTINGS stand
 * before it; the handler does as the path's length says. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "http/http_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TURNS = 1000 };

static struct {
    loop *loop;
    http_server *server;
    int given;
    int closed;
} world;

static void on_request(void *user, http_exchange *exchange)
{
    (void)user;
    static const http_field trailer = {STR_INIT("x-end"), STR_INIT("1")};
    world.given++;
    CHECK(http_exchange_path(exchange).len > 0 && http_exchange_method(exchange).len > 0);
    CHECK(http_exchange_field_count(exchange, STR("host")) == 1);
    CHECK(http_exchange_field_count(exchange, STR("cookie")) <= 1);
    switch (http_exchange_path(exchange).len % 4) {
    case 0:
        break; /* until the connection ends */
    case 1:
        http_exchange_reply(exchange, 200, NULL, 0, http_exchange_body(exchange));
        break;
    case 2:
        CHECK(http_stream_open(exchange, 200, NULL, 0, true) == BAY_OK);
        (void)http_stream_write(exchange, STR("some of it"));
        http_stream_end_with(exchange, &trailer, 1);
        break;
    default:
        http_exchange_abort(exchange);
        break;
    }
}

static void on_closed(void *user, http_exchange *exchange, bool is_complete)
{
    (void)user;
    (void)exchange;
    (void)is_complete;
    world.closed++;
}

static const http_handler handler = {.request = on_request, .closed = on_closed};

static void feed(int fd, bay_str bytes, size_t step)
{
    while (bytes.len > 0) {
        bay_str piece = str_head(bytes, step);
        char drop[4096];
        ssize_t put = send(fd, piece.at, piece.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void)loop_turn(world.loop, 0);
        while (recv(fd, drop, sizeof(drop), MSG_DONTWAIT) > 0) {
        }
        if (put <= 0) {
            return;
        }
        bytes = str_from(bytes, (size_t)put);
    }
}

static void begin(void)
{
    http_server_options options = {.limits = http_server_default_limits, .handler = &handler};
    options.limits.head_bytes = 2048;
    options.limits.head_fields = 16;
    options.limits.body_bytes = 4096;
    options.limits.streams = 8;
    CHECK(loop_new(&world.loop) == BAY_OK);
    CHECK(http_server_new(world.loop, &options, &world.server) == BAY_OK);
    CHECK(http_server_listen(world.server, STR("127.0.0.1:0"), NULL) == BAY_OK);
}

static int connect_to_it(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(http_server_port(world.server))};
    struct linger at_once = {.l_onoff = 1}; /* thousands of connections a second leave nothing */
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0";
    if (size < 2) {
        return 0;
    }
    if (world.loop == NULL) {
        begin();
    }
    world.given = world.closed = 0;
    int fd = connect_to_it();
    size_t step = data[0] & 0x7f;
    if ((data[0] & 0x80) == 0) {
        feed(fd, (bay_str){hello, sizeof(hello)}, sizeof(hello));
    }
    feed(fd, (bay_str){(const char *)data + 1, size - 1}, step == 0 ? size : step);
    (void)loop_turn(world.loop, 0);
    close(fd);
    for (int i = 0; i < TURNS && (i < 4 || http_server_connections(world.server) > 0); i++) {
        (void)loop_turn(world.loop, 1);
    }
    CHECK(http_server_connections(world.server) == 0);
    CHECK(world.given == world.closed);
    return 0;
}
