/* Single values: numbers, sizes, durations, choices; reading, storing and describing them. */
#include "config/internal.h"

typedef struct config_unit {
    const char *name;
    uint64_t factor;
} config_unit;

static const config_unit size_units[] = {
    {"", 1},
    {"B", 1},
    {"K", 1ULL << 10},
    {"KB", 1ULL << 10},
    {"KiB", 1ULL << 10},
    {"M", 1ULL << 20},
    {"MB", 1ULL << 20},
    {"MiB", 1ULL << 20},
    {"G", 1ULL << 30},
    {"GB", 1ULL << 30},
    {"GiB", 1ULL << 30},
};

static const config_unit duration_units[] = {
    {"", 1}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000},
};

static bay_err parse_number(bay_str text, const config_unit *units, size_t count, uint64_t *out,
                            bool *out_is_bare)
{
    size_t digits = 0;
    while (digits < text.len && text.at[digits] >= '0' && text.at[digits] <= '9') {
        digits++;
    }
    uint64_t number;
    if (digits == 0 || digits > 20) {
        return BAY_ERR_SYNTAX;
    }
    if (!str_uint(str_head(text, digits), &number)) {
        return BAY_ERR_RANGE;
    }
    bay_str unit = str_trim(str_from(text, digits));
    for (size_t i = 0; i < count; i++) {
        if (!str_eq_nocase(str_of(units[i].name), unit)) {
            continue;
        }
        if (out_is_bare != NULL) {
            *out_is_bare = unit.len == 0;
        }
        return __builtin_mul_overflow(number, units[i].factor, out) ? BAY_ERR_RANGE : BAY_OK;
    }
    return BAY_ERR_SYNTAX;
}

static bay_err parse_bool(bay_str text, uint64_t *out)
{
    if (str_eq(text, STR("true")) || str_eq(text, STR("True")) || str_eq(text, STR("TRUE"))) {
        *out = 1;
        return BAY_OK;
    }
    if (str_eq(text, STR("false")) || str_eq(text, STR("False")) || str_eq(text, STR("FALSE"))) {
        *out = 0;
        return BAY_OK;
    }
    return BAY_ERR_SYNTAX;
}

static bay_err parse_patience(bay_str text, uint64_t *out, bool *out_is_bare)
{
    enum { LARGEST_IN_SECONDS = 3600 };
    bool is_bare = false;
    bay_err err = parse_number(text, duration_units,
                               sizeof(duration_units) / sizeof(duration_units[0]), out, &is_bare);
    if (err == BAY_OK && is_bare && *out <= LARGEST_IN_SECONDS) {
        *out *= 1000;
    }
    if (out_is_bare != NULL) {
        *out_is_bare = is_bare;
    }
    return err;
}

bay_err config_value_parse(const config_key *key, bay_str text, uint64_t *out, bool *out_is_bare)
{
    uint64_t number = 0;
    bay_err err = BAY_ERR_SYNTAX;
    int index;
    switch (key->type) {
    case CONFIG_TYPE_BOOL:
    case CONFIG_TYPE_INVERSE:
        err = parse_bool(text, out);
        if (err == BAY_OK && key->type == CONFIG_TYPE_INVERSE) {
            *out = !*out;
        }
        return err;
    case CONFIG_TYPE_CHOICE:
        index = config_choice_find(key->extra, text);
        if (index < 0) {
            return BAY_ERR_SYNTAX;
        }
        *out = (uint64_t)index;
        return BAY_OK;
    case CONFIG_TYPE_COUNT:
        err = parse_number(text, size_units, 1, &number, out_is_bare);
        break;
    case CONFIG_TYPE_SIZE:
        err = parse_number(text, size_units, sizeof(size_units) / sizeof(size_units[0]), &number,
                           out_is_bare);
        break;
    case CONFIG_TYPE_DURATION:
        err = parse_number(text, duration_units, sizeof(duration_units) / sizeof(duration_units[0]),
                           &number, out_is_bare);
        break;
    case CONFIG_TYPE_PATIENCE:
        err = parse_patience(text, &number, out_is_bare);
        break;
    default:
        return BAY_ERR_SYNTAX;
    }
    if (err == BAY_OK && (number < key->min || number > key->max)) {
        err = BAY_ERR_RANGE;
    }
    if (err == BAY_OK) {
        *out = number;
    }
    return err;
}

_Static_assert(sizeof(config_transport) == sizeof(unsigned), "a choice is stored as one");

void config_value_store(const config_key *key, void *base, uint64_t value)
{
    char *field = (char *)base + key->offset;
    switch (key->type) {
    case CONFIG_TYPE_BOOL:
    case CONFIG_TYPE_INVERSE:
        *(bool *)field = value != 0;
        break;
    case CONFIG_TYPE_SIZE:
        *(size_t *)field = (size_t)value;
        break;
    case CONFIG_TYPE_CHOICE:
        *(unsigned *)field = (unsigned)value;
        break;
    default:
        *(uint32_t *)field = (uint32_t)value;
        break;
    }
}

static void write_unit(buf *out, uint64_t number, const config_unit *units, const int *which)
{
    size_t best = 0;
    for (size_t i = 0; which[i] != 0; i++) {
        if (number > 0 && number % units[which[i]].factor == 0) {
            best = (size_t)which[i];
        }
    }
    buf_uint(out, number / units[best].factor);
    buf_str(out, str_of(units[best].name));
}

void config_write_size(buf *out, uint64_t bytes)
{
    static const int which[] = {2, 5, 8, 0}; /* K, M, G */
    write_unit(out, bytes, size_units, which);
}

void config_write_duration(buf *out, uint64_t milliseconds)
{
    static const int which[] = {1, 2, 3, 5, 6, 0}; /* ms, s, m, h, d */
    write_unit(out, milliseconds, duration_units, which);
}

static void write_bounds(const config_key *key, void (*write)(buf *, uint64_t), buf *out)
{
    buf_lit(out, " from ");
    write(out, key->min);
    buf_lit(out, " to ");
    write(out, key->max);
}

static void describe_choices(const config_key *key, buf *out)
{
    buf_lit(out, "one of ");
    for (size_t i = 0;; i++) {
        bay_str choice = config_choice_at(key->extra, i);
        if (choice.len == 0) {
            return;
        }
        if (i > 0) {
            buf_lit(out, ", ");
        }
        buf_str(out, choice);
    }
}

void config_value_describe(const config_key *key, buf *out)
{
    switch (key->type) {
    case CONFIG_TYPE_BOOL:
    case CONFIG_TYPE_INVERSE:
        buf_lit(out, "true or false");
        break;
    case CONFIG_TYPE_COUNT:
        buf_lit(out, "a whole number");
        write_bounds(key, buf_uint, out);
        break;
    case CONFIG_TYPE_SIZE:
        buf_lit(out, "a size");
        write_bounds(key, config_write_size, out);
        buf_lit(out, ", such as 512K or 16M");
        break;
    case CONFIG_TYPE_DURATION:
    case CONFIG_TYPE_PATIENCE:
        buf_lit(out, "a duration");
        write_bounds(key, config_write_duration, out);
        buf_lit(out, ", such as 500ms, 10s or 2m");
        break;
    case CONFIG_TYPE_CHOICE:
        describe_choices(key, out);
        break;
    case CONFIG_TYPE_TEXT:
        buf_lit(out, "a text");
        break;
    case CONFIG_TYPE_LIST:
        buf_lit(out, "a list of texts");
        break;
    case CONFIG_TYPE_TEXTS:
    case CONFIG_TYPE_TESTS:
        buf_lit(out, "a text or a list of texts");
        break;
    case CONFIG_TYPE_LISTEN:
        buf_lit(out, "an address host:port, or a list of them");
        break;
    default:
        buf_lit(out, "a map");
        break;
    }
}
