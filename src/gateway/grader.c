#include "gateway/grader.h"

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "trust/grade.h"
#include "trust/identity.h"

/* What is graded, as it was when the work began; read on a thread of the pool. */
typedef struct grading {
    grader *of; /* NULL: it is gone */
    const config *settings;
    const config_server *server;
    trust_pins *pins;
    listing *lists[LISTING_KINDS];
    trust_definitions definitions;
    contract_verdict contracts;
    trust_grade grade;
    bay_err err;
} grading;

struct grader {
    worker_upstream *of;
    grading *under_way; /* NULL: none is */
    bool is_due;
};

/* ---- on a thread of the pool ----------------------------------------------------------------- */

static grade_facts facts_of(const grading *self)
{
    const config_server *server = self->server;
    return (grade_facts){
        .definitions = &self->definitions,
        .transport = server->url.len > 0 ? trust_grade_transport(server->url) : GRADE_PROCESS,
        .has_sandbox = server->sandbox.is_enabled,
        .has_credentials = server->headers.count > 0 || server->tls.certificate.len > 0 ||
                           config_credentials_are_given(&server->credentials),
        .contracts = self->contracts.holding + self->contracts.failing,
        .held = self->contracts.holding,
    };
}

static bay_err grade_scanned(grading *self, const trust_findings *findings)
{
    char bytes[TRUST_IDENTITY_BYTES];
    buf identity = {.at = bytes, .cap = sizeof(bytes), .max = sizeof(bytes)};
    trust_lock lock;
    trust_lock_init(&lock);
    bay_err err = trust_pins_copy(self->pins, self->server->name, false, &lock, &identity);
    if (err == BAY_OK) {
        grade_facts facts = facts_of(self);
        facts.scan = findings;
        facts.pinned = trust_lock_find(&lock, self->server->name, false);
        facts.identity = buf_view(&identity);
        err = trust_grade_run(&facts, &self->grade);
    }
    trust_lock_fini(&lock);
    return err;
}

static void grade(void *argument)
{
    grading *self = argument;
    trust_findings findings;
    scan_rule_set *rules = NULL;
    trust_silences *silences = gateway_silences(self->settings);
    trust_findings_init(&findings);
    trust_definitions_sort(&self->definitions);
    bay_err err = silences != NULL ? config_scan_rules(self->settings, &rules) : BAY_ERR_NOMEM;
    if (err == BAY_OK) {
        err = trust_grade_scan(&self->definitions, rules, silences, &findings);
    }
    self->err = err == BAY_OK ? grade_scanned(self, &findings) : err;
    trust_findings_fini(&findings);
    scan_rule_set_free(rules);
    mem_free(silences);
}

/* ---- on its loop ----------------------------------------------------------------------------- */

static void grading_free(grading *self)
{
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        listing_unref(self->lists[kind]);
    }
    trust_definitions_fini(&self->definitions);
    trust_pins_unref(self->pins);
    config_free(self->settings);
    mem_free(self);
}

/* What costs it the most points. */
static const char *first_remedy(const trust_grade *self)
{
    const grade_row *worst = NULL;
    for (size_t i = 0; i < GRADE_CHECKS; i++) {
        const grade_row *row = &self->rows[i];
        unsigned lost = row->weight - row->points;
        if (row->applies && row->raise[0] != '\0' &&
            (worst == NULL || lost > worst->weight - worst->points)) {
            worst = row;
        }
    }
    return worst != NULL ? worst->raise : "see patchbay grade";
}

static void tell(const grading *self, trust_standing before, trust_standing now, char least)
{
    bay_str name = self->server->name;
    if (before.letter == now.letter && before.is_below == now.is_below) {
        return;
    }
    if (now.is_below) {
        LOG(LOG_WARN, "grade",
            "%.*s: its grade is %c, %u of 100, below %c: all its items are held; what would raise "
            "it most: %s",
            BAY_STR(name), now.letter, now.points, least, first_remedy(&self->grade));
    } else {
        LOG(LOG_INFO, "grade", "%.*s: its grade is %c, %u of 100", BAY_STR(name), now.letter,
            now.points);
    }
}

static void take(const grading *self, worker_upstream *of)
{
    gateway *owner = of->worker->gateway;
    char least = config_least_grade(upstream_config(of->upstream));
    trust_standing before = {0};
    trust_standing now = {.letter = self->grade.letter, .points = self->grade.points};
    now.is_below = least != 0 && now.letter > least;
    if (self->err != BAY_OK) {
        LOG(LOG_ERROR, "grade", "%.*s: it could not be graded: %s", BAY_STR(self->server->name),
            bay_err_text(self->err));
        now = (trust_standing){'F', 0, true};
    }
    uint64_t generation = trust_pins_generation(self->pins);
    if (trust_pins_set_grade(self->pins, self->server->name, now, &before) != BAY_OK) {
        LOG(LOG_ERROR, "grade", "%.*s: out of memory: it is not held for its grade",
            BAY_STR(self->server->name));
    }
    tell(self, before, now, least);
    bool is_news = trust_pins_generation(self->pins) != generation || before.letter == 0;
    if (is_news && !atomic_load(&owner->is_over)) {
        gateway_pins_changed(owner);
    }
}

static void graded(void *argument)
{
    grading *self = argument;
    grader *of = self->of;
    if (of != NULL) {
        of->under_way = NULL;
        take(self, of->of);
        if (of->is_due) {
            grader_run(of);
        }
    }
    grading_free(self);
}

static bay_err take_lists(grading *self, const worker_upstream *of)
{
    static const trust_kind kinds[LISTING_KINDS] = {
        [LISTING_TOOLS] = TRUST_TOOL,
        [LISTING_RESOURCES] = TRUST_RESOURCE,
        [LISTING_TEMPLATES] = TRUST_TEMPLATE,
        [LISTING_PROMPTS] = TRUST_PROMPT,
    };
    bay_err err = BAY_OK;
    for (listing_kind kind = 0; kind < LISTING_KINDS; kind++) {
        listing *current = of->fetches[kind].current;
        self->lists[kind] = current != NULL ? listing_ref(current) : NULL;
        for (size_t i = 0; err == BAY_OK && current != NULL && i < current->count; i++) {
            const listing_item *item = &current->items[i];
            err = trust_definitions_add(&self->definitions, kinds[kind], item->key, item->sent);
        }
    }
    bay_str about = upstream_instructions(of->upstream);
    if (err == BAY_OK && about.len > 0) {
        err = trust_definitions_add_text(&self->definitions, TRUST_INSTRUCTIONS, about);
    }
    return err;
}

void grader_run(grader *self)
{
    if (self == NULL) {
        return;
    }
    worker_upstream *of = self->of;
    self->is_due = true;
    if (self->under_way != NULL || of->is_leaving || of->worker->is_ending ||
        of->fetched != (1u << LISTING_KINDS) - 1) {
        return;
    }
    grading *made = mem_zalloc(sizeof(*made));
    if (made == NULL) {
        return; /* it stays due */
    }
    self->is_due = false;
    made->of = self;
    made->settings = config_ref(of->config);
    made->server = upstream_config(of->upstream); /* of these settings */
    made->pins = trust_pins_ref(of->worker->pins);
    made->contracts = gateway_contracts_verdict(of->worker->contracts, made->server->name);
    trust_definitions_init(&made->definitions, made->server->name);
    if (take_lists(made, of) != BAY_OK ||
        loop_work(of->worker->loop, grade, graded, made) != BAY_OK) {
        self->is_due = true;
        grading_free(made);
        return;
    }
    self->under_way = made;
}

void grader_free(grader *self)
{
    if (self != NULL && self->under_way != NULL) {
        self->under_way->of = NULL;
    }
    mem_free(self);
}

static void set_grader(worker_upstream *at)
{
    trust_pins *pins = at->worker->pins;
    bay_str name = upstream_name(at->upstream);
    bool is_asked = config_least_grade(upstream_config(at->upstream)) != 0;
    trust_standing none = {.is_below = is_asked};
    trust_standing before;
    if (is_asked && at->grader != NULL) {
        grader_run(at->grader);
        return;
    }
    grader_free(at->grader);
    at->grader = is_asked ? mem_zalloc(sizeof(*at->grader)) : NULL;
    if ((is_asked && at->grader == NULL) ||
        (pins != NULL && trust_pins_set_grade(pins, name, none, &before) != BAY_OK)) {
        LOG(LOG_ERROR, "grade", "%.*s: out of memory: it is not graded", BAY_STR(name));
    }
    if (at->grader != NULL) {
        at->grader->of = at;
        grader_run(at->grader);
    }
}

void worker_graders_set(worker *self)
{
    uint64_t before = self->pins != NULL ? trust_pins_generation(self->pins) : 0;
    for (size_t i = 0; i < self->upstream_count; i++) {
        worker_upstream *at = self->upstreams[i];
        if (worker_of_server(self->gateway, upstream_name(at->upstream)) == self->index) {
            set_grader(at);
        }
    }
    if (self->pins != NULL && trust_pins_generation(self->pins) != before) {
        gateway_pins_changed(self->gateway);
    }
}

/* ---- what is known of it --------------------------------------------------------------------- */

bool worker_upstream_awaits_grade(const worker_upstream *self)
{
    return config_least_grade(upstream_config(self->upstream)) != 0 && self->worker->pins != NULL &&
           trust_pins_grade(self->worker->pins, upstream_name(self->upstream)).letter == 0;
}

bool gateway_grade_holds(trust_pins *pins, bay_str server)
{
    return pins != NULL && trust_pins_grade(pins, server).is_below;
}

void gateway_grade_write(trust_pins *pins, bay_str server, json_writer *out)
{
    trust_standing grade = {0};
    if (pins != NULL) {
        grade = trust_pins_grade(pins, server);
    }
    if (grade.letter == 0 && !grade.is_below) {
        return;
    }
    json_key_lit(out, "grade");
    json_open_object(out);
    if (grade.letter != 0) {
        json_key_lit(out, "letter");
        json_put_str(out, (bay_str){&grade.letter, 1});
        json_key_lit(out, "points");
        json_put_uint(out, grade.points);
    }
    json_key_lit(out, "held");
    json_put_bool(out, grade.is_below);
    json_close_object(out);
}
