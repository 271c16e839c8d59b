/* An endpoint between two servers without servers and two clients, all in memory: `legacy` has a
 * session of the handshake era, `modern` speaks the stateless one; each on a duplex carrier. */
#ifndef SUPPORT_FACE_TESTING_H
#define SUPPORT_FACE_TESTING_H

#include "support/fake_listing.h"

#include "endpoint/endpoint.h"
#include "net/loop.h"

#ifndef STAGE_DOOR
#define STAGE_DOOR NULL /* what its calls pass; NULL: none */
#endif
#ifndef STAGE_TASKS
#define STAGE_TASKS NULL /* an endpoint that knows of none */
#endif

enum { MAX_LINES = 64 };

typedef struct peer { /* a client on a duplex carrier */
    mcp_carrier carrier;
    mcp_connection *connection;
    char *lines[MAX_LINES];
    int count;
    bay_err says; /* what `event` returns */
} peer;

typedef struct stage {
    const config *config;
    loop *loop;      /* NULL: nothing can be parked or waited for */
    seal_ring *ring; /* likewise */
    endpoint *endpoint;
    fake *a;
    fake *b;
    catalog_source sources[2];
    peer legacy;
    peer modern;
} stage;

static inline bay_err peer_event(mcp_carrier *carrier, bay_str json, bay_str event_id)
{
    peer *self = (peer *)carrier;
    (void)event_id;
    if (json.len > 0) {
        assert_true(self->count < MAX_LINES);
        self->lines[self->count++] = mem_dup(json.at, json.len);
    }
    return self->says;
}

static const mcp_carrier_ops peer_ops = {.event = peer_event};

static inline void say(peer *self, const char *message)
{
    char *text = testing_quotes(message);
    mcp_connection_receive(self->connection, str_of(text), 1000);
    mem_free(text);
}

static inline void forget(peer *self)
{
    for (int i = 0; i < self->count; i++) {
        mem_free(self->lines[i]);
    }
    self->count = 0;
}

/* The one line that came since the last look. */
static inline void assert_heard(peer *self, const char *wanted)
{
    if (self->count != 1) {
        for (int i = 0; i < self->count; i++) {
            print_error("%s\n", self->lines[i]);
        }
    }
    assert_int_equal(self->count, 1);
    char *text = testing_quotes(wanted);
    assert_text(str_of(self->lines[0]), text);
    mem_free(text);
    forget(self);
}

static inline void assert_heard_part(peer *self, const char *part)
{
    assert_int_equal(self->count, 1);
    char *text = testing_quotes(part);
    if (strstr(self->lines[0], text) == NULL) {
        print_error("heard:  %s\nwanted: %s\n", self->lines[0], text);
    }
    assert_non_null(strstr(self->lines[0], text));
    mem_free(text);
    forget(self);
}

static inline void peer_open(peer *self, endpoint *to)
{
    *self = (peer){.carrier.ops = &peer_ops};
    assert_int_equal(mcp_connection_open(endpoint_engine(to), &self->carrier, &self->connection),
                     BAY_OK);
}

#define META_OF(capabilities)                                                                      \
    "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"                             \
    "'io.modelcontextprotocol/clientInfo':{'name':'c','version':'1'},"                             \
    "'io.modelcontextprotocol/clientCapabilities':" capabilities
#define META META_OF("{'elicitation':{}}")
#define MODERN(id, method, params)                                                                 \
    "{'jsonrpc':'2.0','id':" id ",'method':'" method "','params':{" params "," META "}}}"
#define LEGACY(id, method, params)                                                                 \
    "{'jsonrpc':'2.0','id':" id ",'method':'" method "','params':{" params "}}"

/* `who`: the session client's revision and capabilities, as "'protocolVersion':…,'capabilities':…".
 */
static inline void open_for(stage *self, const char *settings, const char *only, const char *who)
{
    static const char *tools_a = "[{\"name\":\"echo\"},{\"name\":\"x.y\"}]";
    static const char *tools_b = "[{\"name\":\"echo\"}]";
    char hello[1000];
    self->config = testing_config(settings);
    endpoint_options options = {.config = self->config,
                                .only = str_of(only),
                                .worker = 5,
                                .loop = self->loop,
                                .ring = self->ring,
                                .tasks = STAGE_TASKS,
                                .door = STAGE_DOOR};
    assert_int_equal(endpoint_new(&options, &self->endpoint), BAY_OK);
    self->a = fake_new("a", true);
    self->b = fake_new("b", false);
    self->sources[0].upstream = &self->a->base;
    self->sources[1].upstream = &self->b->base;
    self->sources[0].listings[LISTING_TOOLS] = listing_of(self->a, LISTING_TOOLS, tools_a);
    self->sources[1].listings[LISTING_TOOLS] = listing_of(self->b, LISTING_TOOLS, tools_b);
    self->sources[0].listings[LISTING_PROMPTS] =
        listing_of(self->a, LISTING_PROMPTS, "[{\"name\":\"p\"}]");
    self->sources[0].listings[LISTING_RESOURCES] =
        listing_of(self->a, LISTING_RESOURCES, "[{\"uri\":\"f:///a\",\"name\":\"r\"}]");
    self->sources[1].listings[LISTING_TEMPLATES] =
        listing_of(self->b, LISTING_TEMPLATES, "[{\"uriTemplate\":\"g:///{id}\",\"name\":\"r\"}]");
    assert_int_equal(
        endpoint_set_sources(self->endpoint, self->config, self->sources, only[0] != '\0' ? 1 : 2),
        BAY_OK);
    peer_open(&self->legacy, self->endpoint);
    peer_open(&self->modern, self->endpoint);
    (void)snprintf(hello, sizeof(hello),
                   "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{%s,"
                   "'clientInfo':{'name':'c','version':'1'}}}",
                   who);
    say(&self->legacy, hello);
    say(&self->legacy, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    assert_heard_part(&self->legacy, "'protocolVersion':'20");
}

static inline void open_with(stage *self, const char *settings, const char *only)
{
    *self = (stage){0};
    open_for(self, settings, only, "'protocolVersion':'2025-11-25','capabilities':{}");
}

/* With a loop and a key, so that calls can be parked and waited for. */
static inline void open_on_loop(stage *self, const char *settings, const char *who)
{
    *self = (stage){0};
    assert_int_equal(loop_new(&self->loop), BAY_OK);
    assert_int_equal(seal_ring_new(&self->ring), BAY_OK);
    assert_int_equal(seal_ring_generate(self->ring), BAY_OK);
    open_for(self, settings, "", who);
    endpoint_lists_ready(self->endpoint);
}

static inline void open_stage(stage *self)
{
    open_with(self, "workers: 1", "");
    endpoint_lists_ready(self->endpoint);
}

static inline void close_stage(stage *self)
{
    mcp_connection_close(self->legacy.connection);
    mcp_connection_close(self->modern.connection);
    endpoint_free(self->endpoint);
    for (size_t i = 0; i < 2; i++) {
        for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
            listing_unref(self->sources[i].listings[kind]);
        }
    }
    fake_free(self->a);
    fake_free(self->b);
    forget(&self->legacy);
    forget(&self->modern);
    config_free(self->config);
    seal_ring_free(self->ring);
    if (self->loop != NULL) {
        loop_free(self->loop);
    }
}

static inline void assert_asked(const fake *server, const char *method, const char *rename,
                                const char *params)
{
    assert_int_equal(server->held_count, 1);
    const mcp_call_spec *spec = &server->held[0]->spec;
    char *text = testing_quotes(params);
    assert_text(spec->method, method);
    assert_text(spec->rename, rename);
    assert_text(json_raw(spec->params), text);
    mem_free(text);
}

#endif
