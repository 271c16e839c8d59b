/* The clients of a chaos run: they call tools through the gateway, each call with a number of its
 * own, and keep a ledger of what became of every one. What breaks they take as a client should: a
 * session that is gone is opened anew, an answer that was under way when its connection broke is
 * asked for by Last-Event-ID, what certainly did not arrive is sent again, and nothing else is.
 *
 *     clients [-n CLIENTS] [-s SEED] -b BOARD PORT SERVER…      until its stdin ends
 *
 * Every other client is of the legacy era. At the end each entry of the ledger is held against the
 * board's count of executions, and the sums are printed as one line; 1 when anything is wrong:
 *     double       a call was answered twice
 *     foreign      an answer came that was for somebody else, or said another number
 *     open         a call had neither an answer nor a connection that broke
 *     dropped      its connection broke although the gateway was not killed; but a request that
 *                  met a connection just being closed, and was not executed, only "raced"
 *     twice        a call was executed more often than its answers and hints allow
 *     unexecuted   a call was answered well and never executed
 *     dishonest    a call was said to have failed before it was executed, and was executed */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "board.h"
#include "talk.h"

#define META                                                                                       \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"chaos\",\"version\":\"1\"},"               \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}}"
#define ANSWER "{\"action\":\"accept\",\"content\":{\"who\":\"me\"}}"
#define COMMON "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"

enum {
    ROUNDS_MAX = 8,
    PAUSE_US = 20 * 1000,
    PATIENCE_US = 40 * 1000 * 1000, /* longer than whatever the gateway waits for */
    TURN_MS = 5,
};

typedef enum outcome {
    OPEN,
    ANSWERED,
    FAILED,    /* and was not executed, it is said */
    UNCERTAIN, /* and may have been, it is said */
    LOST,      /* with its connection, when the gateway was killed */
    DROPPED,   /* with its connection, and it was not */
    OUTCOMES
} outcome;

typedef struct entry {
    uint8_t outcome;
    bool may_run_twice, was_resumed, is_modern, had_no_reply;
} entry;

typedef enum stage {
    NEW,      /* no session yet */
    GREETING, /* initialize is under way */
    GREETED,  /* notifications/initialized is */
    READY,
    CALLING,
    RESUMING,
} stage;

typedef struct client {
    talk_line line, answers, stream;
    bool is_modern;
    stage stage;
    char session[TALK_SESSION];
    char event_id[TALK_ID];  /* of the call under way */
    char stream_id[TALK_ID]; /* of the last event of `stream` */
    uint64_t at_us;          /* nothing before */
    uint64_t give_up_us;
    unsigned id; /* of the request under way */
    uint32_t call;
    bool has_call, is_over; /* is_over: the call has its outcome, its reply is still under way */
    outcome broken;         /* of a call whose stream broke, unless the rest of it can be had */
    const char *server, *tool;
    unsigned ms, rounds;
    talk_text retry; /* what its last answer wants to be brought along */
    uint64_t random;
} client;

typedef struct chaos {
    board *board;
    client *clients;
    size_t client_count;
    char **servers;
    size_t server_count;
    uint32_t calls;
    entry *ledger;
    bool is_ending;
    unsigned doubled, foreign, turned_away, sent_again, sessions_lost, complaints;
} chaos;

static chaos self = {.client_count = 100};

static const talk_events call_events, answer_events, stream_events;

/* The same order of calls for the same seed. */
static uint64_t draw(client *one, uint64_t below)
{
    one->random = one->random * 6364136223846793005u + 1442695040888963407u;
    return (one->random >> 33) % below;
}

static void complain(const char *what, const client *one, const char *text)
{
    if (self.complaints++ < 20) {
        struct timespec now; /* as the gateway's log has it */
        clock_gettime(CLOCK_REALTIME, &now);
        fprintf(stderr,
                "%02u:%02u:%02u.%03u clients: %s: call %u of %s.%s by %s, %u ms old: %.400s\n",
                (unsigned)(now.tv_sec / 3600 % 24), (unsigned)(now.tv_sec / 60 % 60),
                (unsigned)(now.tv_sec % 60), (unsigned)(now.tv_nsec / 1000000), what, one->call,
                one->server, one->tool, one->is_modern ? "a modern client" : "a session",
                (unsigned)((talk_now_us() + PATIENCE_US - one->give_up_us) / 1000), text);
    }
}

static void pause_for(client *one, uint64_t us)
{
    one->at_us = talk_now_us() + us;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void fields_of(const client *one, talk_text *out)
{
    if (one->is_modern) {
        talk_text_put(out,
                      COMMON "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
                             "Mcp-Name: %s.%s\r\n",
                      one->server, one->tool);
    } else {
        talk_text_put(out, COMMON "MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: %s\r\n",
                      one->session);
    }
}

static void send_call(client *one)
{
    talk_text fields = {0};
    talk_text body = {0};
    fields_of(one, &fields);
    talk_text_put(
        &body,
        "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"tools/call\",\"params\":{\"name\":\"%s.%s\","
        "\"arguments\":{\"n\":%u,\"ms\":%u}",
        ++one->id, one->server, one->tool, one->call, one->ms);
    if (one->retry.len > 0) {
        talk_text_add(&body, one->retry.at, one->retry.len);
        talk_text_free(&one->retry);
    }
    if (one->is_modern) {
        talk_text_put(&body, "," META "}}");
    } else { /* progress makes the answer a stream, which can be resumed */
        talk_text_put(&body, ",\"_meta\":{\"progressToken\":%u}}}", one->call);
    }
    one->stage = CALLING;
    one->event_id[0] = '\0';
    talk_request(&one->line, "POST", fields.at, body.at);
    talk_text_free(&fields);
    talk_text_free(&body);
}

/* A tool whose hints say so, of a server whose hints the configuration trusts. */
static bool may_run_twice(const client *one)
{
    bool is_trusted = strcmp(one->server, "old-http") == 0 || strcmp(one->server, "new-pipe") == 0;
    return is_trusted && strcmp(one->tool, "look") == 0;
}

static void begin_call(client *one)
{
    static const char *const tools[] = {"tool_000", "tool_000", "tool_000", "look",
                                        "slow",     "slow",     "ask"};
    if (!one->has_call) {
        one->call = self.calls++;
        one->server = self.servers[draw(one, self.server_count)];
        one->tool = tools[draw(one, sizeof(tools) / sizeof(tools[0]))];
        one->ms = strcmp(one->tool, "slow") == 0 ? (unsigned)(10 + draw(one, 300)) : 0;
        one->has_call = true;
        one->is_over = false;
        one->rounds = 0;
        one->give_up_us = talk_now_us() + PATIENCE_US;
        self.ledger[one->call].is_modern = one->is_modern;
        self.ledger[one->call].may_run_twice = may_run_twice(one);
    }
    send_call(one);
}

static void greet(client *one)
{
    one->stage = GREETING;
    one->session[0] = '\0';
    one->line.session[0] = '\0';
    talk_request(&one->line, "POST", COMMON,
                 "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                 "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{}},"
                 "\"clientInfo\":{\"name\":\"chaos\",\"version\":\"1\"}}}");
}

static void send_initialized(client *one)
{
    talk_text fields = {0};
    one->stage = GREETED;
    fields_of(one, &fields);
    talk_request(&one->line, "POST", fields.at,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    talk_text_free(&fields);
}

/* The stream of a session, or what is left of the stream `id` was read on. */
static void send_get(client *one, talk_line *line, const char *id)
{
    talk_text fields = {0};
    fields_of(one, &fields);
    if (id[0] != '\0') {
        talk_text_put(&fields, "Last-Event-ID: %s\r\n", id);
    }
    talk_request(line, "GET", fields.at, "");
    talk_text_free(&fields);
}

/* ---- what comes of a call -------------------------------------------------------------------- */

static outcome lost(void)
{
    return __atomic_load_n(&self.board->is_crashing, __ATOMIC_SEQ_CST) != 0 ? LOST : DROPPED;
}

/* The stream of the call broke, or that on which it was resumed. */
static void resume_later(client *one)
{
    if (one->stage != RESUMING || lost() == LOST) {
        one->broken = lost();
    }
    one->stage = RESUMING;
    pause_for(one, PAUSE_US);
}

static void conclude(client *one, outcome how, const char *text)
{
    entry *its = &self.ledger[one->call];
    if (one->is_over || its->outcome != OPEN) {
        self.doubled++;
        complain("answered twice", one, text);
        return;
    }
    its->outcome = (uint8_t)how;
    its->was_resumed = one->stage == RESUMING;
    one->is_over = true;
}

/* The line is free: whatever is next. */
static void go_on(client *one)
{
    if (one->is_over) {
        bool is_answered = self.ledger[one->call].outcome == ANSWERED;
        pause_for(one, draw(one, is_answered ? 4000 : 50000)); /* who fails is not hurried */
        one->has_call = false;
        one->is_over = false;
        talk_text_free(&one->retry);
    }
    one->stage = READY;
}

static void lose_session(client *one)
{
    self.sessions_lost++;
    talk_close(&one->stream);
    one->stream_id[0] = '\0';
    one->stage = NEW;
}

/* A question on the stream of a call. */
static void answer_question(client *one, const char *text)
{
    talk_text fields = {0};
    talk_text body = {0};
    const char *id = strstr(text, "\"id\":");
    if (id == NULL) {
        return;
    }
    if (one->answers.is_busy) {
        talk_close(&one->answers);
    }
    fields_of(one, &fields);
    id += 5;
    talk_text_put(&body, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":" ANSWER "}",
                  (int)strcspn(id, ",}"), id);
    talk_request(&one->answers, "POST", fields.at, body.at);
    talk_text_free(&fields);
    talk_text_free(&body);
}

/* Keeps what the next round brings along: an answer to each question, and the state. */
static bool keep_retry(client *one, const char *text)
{
    const char *asked = strstr(text, "\"inputRequests\":{\"");
    const char *state = strstr(text, "\"requestState\":\"");
    if (asked == NULL || state == NULL || ++one->rounds > ROUNDS_MAX) {
        return false;
    }
    asked += strlen("\"inputRequests\":{\"");
    state += strlen("\"requestState\":\"");
    talk_text_free(&one->retry);
    talk_text_put(&one->retry,
                  ",\"inputResponses\":{\"%.*s\":" ANSWER "},\"requestState\":\"%.*s\"",
                  (int)strcspn(asked, "\""), asked, (int)strcspn(state, "\""), state);
    return true;
}

static bool may_have_run(const char *text)
{
    return strstr(text, "\"patchbay/mayHaveRun\":true") != NULL;
}

static void take_result(client *one, const char *text)
{
    char expected[64];
    if (strstr(text, "\"resultType\":\"input_required\"") != NULL) {
        if (!keep_retry(one, text)) {
            self.foreign++;
            complain("asked without end or sense", one, text);
            conclude(one, FAILED, text);
        }
        return;
    }
    (void)snprintf(expected, sizeof(expected), "n=%u of", one->call);
    if (strstr(text, expected) == NULL && strstr(text, "\"isError\":true") == NULL) {
        self.foreign++;
        complain("another call's answer", one, text);
    }
    if (may_have_run(text)) {
        conclude(one, UNCERTAIN, text);
    } else {
        conclude(one, strstr(text, "\"isError\":true") != NULL ? FAILED : ANSWERED, text);
    }
}

static void take_message(client *one, char *text)
{
    char id[32];
    bool is_answer = strstr(text, "\"result\":") != NULL || strstr(text, "\"error\":") != NULL;
    if (strstr(text, "\"method\":\"elicitation/create\"") != NULL && !one->is_modern) {
        answer_question(one, text);
        return;
    }
    if (!is_answer) {
        return; /* progress, log, a change */
    }
    (void)snprintf(id, sizeof(id), "\"id\":%u,", one->id);
    if (strstr(text, id) == NULL || !one->has_call) {
        self.foreign++;
        complain("an answer to nothing that was asked", one, text);
    } else if (strstr(text, "\"error\":") != NULL) {
        conclude(one, may_have_run(text) ? UNCERTAIN : FAILED, text);
    } else {
        take_result(one, text);
    }
}

/* ---- the line of calls ----------------------------------------------------------------------- */

static void call_message(talk_line *line, char *text)
{
    client *one = line->user;
    if ((one->stage == CALLING || one->stage == RESUMING) && line->status == 200) {
        take_message(one, text);
    }
}

static void call_replied(talk_line *line)
{
    client *one = line->user;
    switch (one->stage) {
    case GREETING:
        if (line->status == 200 && line->session[0] != '\0') {
            memcpy(one->session, line->session, sizeof(one->session));
            send_initialized(one);
            return;
        }
        one->stage = NEW;
        pause_for(one, PAUSE_US);
        return;
    case GREETED:
        one->stage = line->status < 300 ? READY : NEW;
        return;
    default:
        break;
    }
    if (line->status == 404 && !one->is_modern) {
        if (one->stage == RESUMING) {
            conclude(one, one->broken, "");
        }
        lose_session(one);
        return;
    }
    if (line->status == 503 || line->status == 429) {
        self.turned_away++;
        pause_for(one, PAUSE_US);
        one->stage = READY;
        return;
    }
    if (line->status != 200) { /* to a GET it is the stream that is refused, not the call */
        conclude(one, one->stage == RESUMING ? one->broken : FAILED, "");
    }
    if (one->retry.len > 0) {
        send_call(one);
        return;
    }
    if (!one->is_over) { /* a stream that ended early wants to be asked for again */
        if (one->event_id[0] != '\0' || line->event_id[0] != '\0') {
            if (line->event_id[0] != '\0') {
                memcpy(one->event_id, line->event_id, sizeof(one->event_id));
            }
            resume_later(one);
            return;
        }
        complain("a reply without an answer", one, "");
        conclude(one, DROPPED, "");
    }
    go_on(one);
}

static void call_broken(talk_line *line)
{
    client *one = line->user;
    pause_for(one, PAUSE_US);
    if (one->stage == GREETING || one->stage == GREETED) {
        one->stage = NEW;
        return;
    }
    if (one->is_over) {
        go_on(one);
    } else if (one->stage == RESUMING) {
        if (line->event_id[0] != '\0') {
            memcpy(one->event_id, line->event_id, sizeof(one->event_id));
        }
        resume_later(one);
    } else if (!line->was_sent) {
        self.sent_again++;
        one->stage = READY;
    } else if (line->event_id[0] != '\0' && !one->is_modern) {
        memcpy(one->event_id, line->event_id, sizeof(one->event_id));
        resume_later(one);
    } else {
        if (lost() == DROPPED) {
            complain("its connection ended", one, "");
        }
        self.ledger[one->call].had_no_reply = !line->has_head;
        conclude(one, lost(), "");
        go_on(one);
    }
}

static void answer_message(talk_line *line, char *text)
{
    (void)line;
    (void)text;
}

static void answer_replied(talk_line *line)
{
    (void)line;
}

static const talk_events answer_events = {answer_message, answer_replied, answer_replied};

/* ---- the stream of a session ----------------------------------------------------------------- */

static void stream_message(talk_line *line, char *text)
{
    client *one = line->user;
    if (line->event_id[0] != '\0') {
        memcpy(one->stream_id, line->event_id, sizeof(one->stream_id));
    }
    if (line->status == 200) {
        take_message(one, text);
    }
}

static const talk_events call_events = {call_message, call_replied, call_broken};
static const talk_events stream_events = {stream_message, answer_replied, answer_replied};

/* ---- turns ----------------------------------------------------------------------------------- */

static void give_up(client *one)
{
    complain("no answer", one, "");
    talk_close(&one->line);
    one->has_call = false;
    one->stage = one->is_modern || one->session[0] != '\0' ? READY : NEW;
}

static void client_turn(client *one, uint64_t now)
{
    if (one->has_call && !one->is_over && now > one->give_up_us) {
        give_up(one);
    }
    if (one->is_over && !one->line.is_busy && one->stage != NEW) {
        go_on(one);
    }
    if (one->line.is_busy) {
        if (one->stage == RESUMING && one->is_over) {
            talk_close(&one->line); /* a stream that goes on after the answer */
            go_on(one);
        }
        return;
    }
    if (now < one->at_us) {
        return;
    }
    if (one->stage == RESUMING) {
        send_get(one, &one->line, one->event_id);
    } else if (one->stage == NEW && !one->is_modern) {
        if (one->is_over) {
            one->has_call = one->is_over = false;
        }
        if (one->has_call || !self.is_ending) {
            greet(one);
        }
    } else if (one->has_call || !self.is_ending) {
        begin_call(one);
    }
    if (!one->is_modern && one->stage >= READY && one->call % 2 == 0 && !one->stream.is_busy) {
        send_get(one, &one->stream, one->stream_id);
    }
}

static bool has_input_ended(void)
{
    char bytes[64];
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, bytes, sizeof(bytes)) <= 0;
}

static void run(void)
{
    size_t busy = 1;
    while (busy > 0) {
        self.is_ending = self.is_ending || has_input_ended();
        uint64_t now = talk_now_us();
        busy = self.is_ending ? 0 : 1;
        for (size_t i = 0; i < self.client_count; i++) {
            client_turn(&self.clients[i], now);
            busy += self.clients[i].has_call ? 1 : 0;
        }
        if (self.calls + self.client_count >= BOARD_CALLS) {
            self.is_ending = true;
        }
        talk_turn(TURN_MS);
    }
}

/* ---- the ledger against the board ------------------------------------------------------------ */

static int settle(void)
{
    unsigned sums[OUTCOMES] = {0};
    unsigned twice = 0;
    unsigned unexecuted = 0;
    unsigned dishonest = 0;
    unsigned resumed = 0;
    unsigned lost_modern = 0;
    unsigned raced = 0;
    for (uint32_t n = 0; n < self.calls; n++) {
        const entry *its = &self.ledger[n];
        uint32_t executed = __atomic_load_n(&self.board->executed[n], __ATOMIC_SEQ_CST);
        bool is_nothing = its->outcome == FAILED;
        bool is_raced = its->outcome == DROPPED && its->had_no_reply && executed == 0;
        raced += is_raced ? 1 : 0;
        sums[its->outcome] += is_raced ? 0 : 1;
        resumed += its->was_resumed ? 1 : 0;
        lost_modern += its->outcome == LOST && its->is_modern ? 1 : 0;
        twice += executed > 1 && !its->may_run_twice ? 1 : 0;
        unexecuted += its->outcome == ANSWERED && executed == 0 ? 1 : 0;
        dishonest += is_nothing && executed > 0 && !its->may_run_twice ? 1 : 0;
        if (is_nothing && executed > 0 && !its->may_run_twice && dishonest < 10) {
            fprintf(stderr, "clients: call %u was said not to have run, and ran\n", n);
        }
    }
    printf("calls=%u answered=%u resumed=%u failed=%u uncertain=%u lost=%u lost_modern=%u raced=%u "
           "dropped=%u "
           "turned_away=%u sent_again=%u sessions_lost=%u double=%u foreign=%u open=%u twice=%u "
           "unexecuted=%u dishonest=%u\n",
           self.calls, sums[ANSWERED], resumed, sums[FAILED], sums[UNCERTAIN], sums[LOST],
           lost_modern, raced, sums[DROPPED], self.turned_away, self.sent_again, self.sessions_lost,
           self.doubled, self.foreign, sums[OPEN], twice, unexecuted, dishonest);
    return self.doubled + self.foreign + sums[OPEN] + sums[DROPPED] + twice + unexecuted +
                       dishonest >
                   0
               ? 1
               : 0;
}

static void usage(void)
{
    fprintf(stderr, "usage: clients [-n clients] [-s seed] -b board PORT SERVER...\n");
    exit(2);
}

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    for (int option; (option = getopt(argc, argv, "n:s:b:")) != -1;) {
        switch (option) {
        case 'n':
            self.client_count = strtoul(optarg, NULL, 10);
            break;
        case 's':
            seed = strtoull(optarg, NULL, 10);
            break;
        case 'b':
            self.board = board_open(optarg);
            break;
        default:
            usage();
        }
    }
    if (argc - optind < 2 || self.board == NULL) {
        usage();
    }
    talk_init((uint16_t)strtoul(argv[optind], NULL, 10));
    self.servers = argv + optind + 1;
    self.server_count = (size_t)(argc - optind - 1);
    self.ledger = calloc(BOARD_CALLS, sizeof(entry));
    self.clients = calloc(self.client_count, sizeof(client));
    if (self.ledger == NULL || self.clients == NULL) {
        return 1;
    }
    for (size_t i = 0; i < self.client_count; i++) {
        client *one = &self.clients[i];
        one->line = (talk_line){.events = &call_events, .user = one};
        one->answers = (talk_line){.events = &answer_events, .user = one};
        one->stream = (talk_line){.events = &stream_events, .user = one};
        one->is_modern = i % 2 == 0;
        one->stage = one->is_modern ? READY : NEW;
        one->server = one->tool = "";
        one->random = seed * 1000003 + i;
    }
    run();
    return settle();
}
