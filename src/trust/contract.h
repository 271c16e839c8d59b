/* Contracts: calls of tools with what must be true of their results. Read from documents (contracts/NAME.yaml), judged
 * here; whoever has a session makes the calls.
 *
 *   server: weather
 *   contracts:
 *     - name: a city
 *       tool: get_weather
 *       arguments: {location: Tokyo}
 *       expect: {text: °C, latencyMs: 2000, pointers: {/structuredContent/temperature: {type: number}}} */
#ifndef TRUST_CONTRACT_H
#define TRUST_CONTRACT_H

#include "base/buf.h"
#include "patchbay/types.h"
#include "json/json.h"

enum {
    CONTRACTS = 1000,       /* of one file */
    CONTRACT_POINTERS = 64, /* of one contract */
    CONTRACT_NAME_BYTES = 256,
};

typedef struct trust_contract {
    bay_str name; /* the tool's where it has none */
    bay_str tool;
    json_val arguments; /* an object */
    bool may_write;     /* also of a tool that does not claim to be read-only */
    bool is_error;      /* what isError must be */
    bool has_bytes;
    uint64_t bytes; /* of the result, at most */
    bool has_latency;
    uint64_t latency_ms; /* at most */
    bay_str text;        /* a text block must contain it; "": any */
    json_val schema;     /* of the whole result; may be missing */
    json_val pointers;   /* pointer into the result, schema of the value there; may be missing */
    json_val at;         /* where the contract stands in its document */
} trust_contract;

typedef struct trust_contracts {
    bay_str server; /* "": the document names none */
    trust_contract *at;
    size_t count;
} trust_contracts;

/* Reads a document, which must outlive `out`; `out` lies in `memory`.
 * Errors: BAY_ERR_INVALID: `*out_place` is the value that is wrong and `diag` says why; BAY_ERR_NOMEM, BAY_ERR_LIMIT. */
bay_err trust_contracts_read(json_val root, arena *memory, trust_contracts *out,
                             json_val *out_place, bay_diag *diag) BAY_MUST_CHECK;

/* May the tool be called that the server lists as `tool` (JSON_MISSING: it lists none)? One that does not claim to be
 * read-only only if the contract says `writes: true`. False: `out` says why in a line. */
bool trust_contract_may_call(const trust_contract *self, json_val tool, buf *out);
/* The params of tools/call, in `memory`. BAY_ERR_NOMEM, BAY_ERR_LIMIT. */
bay_err trust_contract_params(const trust_contract *self, arena *memory,
                              json_val *out) BAY_MUST_CHECK;

/* What came of a call. */
typedef struct trust_outcome {
    json_val result; /* of tools/call; missing: there was none, and `failure` says why */
    bay_str failure;
    uint64_t latency_ms;
} trust_outcome;

/* Appends a sentence a line for each expectation that fails; nothing: the contract holds. `output_schema`: the tool's
 * own (may be missing), which a result without isError must satisfy. Errors: stick in `out`; BAY_ERR_NOMEM. */
bay_err trust_contract_judge(const trust_contract *self, const trust_outcome *outcome,
                             json_val output_schema, buf *out) BAY_MUST_CHECK;

#endif
