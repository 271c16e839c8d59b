/* The values of ProtoJSON beyond plain JSON. */
#include "a2a/scalar.h"

#include "base/check.h"

static const bay_str states_0_3[] = {
    STR_INIT("TASK_STATE_UNSPECIFIED"),    STR_INIT("TASK_STATE_SUBMITTED"),
    STR_INIT("TASK_STATE_WORKING"),        STR_INIT("TASK_STATE_COMPLETED"),
    STR_INIT("TASK_STATE_FAILED"),         STR_INIT("TASK_STATE_CANCELLED"),
    STR_INIT("TASK_STATE_INPUT_REQUIRED"), STR_INIT("TASK_STATE_REJECTED"),
    STR_INIT("TASK_STATE_AUTH_REQUIRED"),
};
static const bay_str roles[] = {STR_INIT("ROLE_UNSPECIFIED"), STR_INIT("ROLE_USER"),
                                STR_INIT("ROLE_AGENT")};

static const bay_str *values_of(a2a_kind kind, uint32_t *out_count)
{
    if (kind == A2A_KIND_ROLE) {
        *out_count = ARRAY_LEN(roles);
        return roles;
    }
    *out_count = A2A_STATES;
    return kind == A2A_KIND_STATE ? a2a_state_names : states_0_3;
}

bay_str a2a_enum_name(a2a_kind kind, uint64_t number)
{
    uint32_t count;
    const bay_str *values = values_of(kind, &count);
    return number < count ? values[number] : (bay_str){"", 0};
}

int a2a_enum_read(a2a_kind kind, json_val value)
{
    uint32_t count;
    const bay_str *values = values_of(kind, &count);
    int64_t number;
    if (json_is(value, JSON_NUMBER)) {
        return json_int64(value, &number) == BAY_OK && number >= 0 && number < count ? (int)number
                                                                                     : -1;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (json_str_eq(value, values[i])) {
            return (int)i;
        }
    }
    return -1;
}

/* Digits after a sign, from a string. */
static bay_err integer_of(bay_str text, int64_t *out)
{
    bool is_negative = text.len > 0 && text.at[0] == '-';
    uint64_t number;
    text = str_from(text, is_negative);
    if (text.len == 0 || !str_uint(text, &number)) {
        return BAY_ERR_TYPE;
    }
    if (number > INT32_MAX + UINT64_C(1)) {
        return BAY_ERR_RANGE;
    }
    *out = is_negative ? -(int64_t)number : (int64_t)number;
    return BAY_OK;
}

bay_err a2a_int32_read(json_val value, int32_t *out)
{
    int64_t number = 0;
    bay_str text;
    bay_err err =
        json_str_plain(value, &text) ? integer_of(text, &number) : json_int64(value, &number);
    if (err != BAY_OK) {
        return err;
    }
    if (number < INT32_MIN || number > INT32_MAX) {
        return BAY_ERR_RANGE;
    }
    *out = (int32_t)number;
    return BAY_OK;
}

/* ---- times ----------------------------------------------------------------------------------- */

/* `count` digits at the front of *text, which is advanced past them; -1: there are fewer. */
static int take_digits(bay_str *text, size_t count)
{
    int number = 0;
    if (text->len < count) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (text->at[i] < '0' || text->at[i] > '9') {
            return -1;
        }
        number = number * 10 + (text->at[i] - '0');
    }
    *text = str_from(*text, count);
    return number;
}

static bool scalar_take(bay_str *text, char c)
{
    bool is_there = text->len > 0 && (text->at[0] == c || (text->at[0] == (c | 0x20) && c >= 'A'));
    *text = str_from(*text, is_there);
    return is_there;
}

/* Days since 1970-01-01 of a date of the Gregorian calendar. Years begin in March, so that the leap
 * day is the last of its year. */
static int64_t days_of(int year, int month, int day)
{
    int64_t y = month > 2 ? year : year - 1;
    int64_t era = y / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool take_date(bay_str *text, int64_t *out_days)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = take_digits(text, 4);
    if (year < 1 || !scalar_take(text, '-')) {
        return false;
    }
    int month = take_digits(text, 2);
    if (month < 1 || month > 12 || !scalar_take(text, '-')) {
        return false;
    }
    int day = take_digits(text, 2);
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (day < 1 || day > days[month - 1] || (month == 2 && day == 29 && !is_leap)) {
        return false;
    }
    *out_days = days_of(year, month, day);
    return true;
}

static bool take_clock(bay_str *text, int *out_seconds)
{
    int hour = take_digits(text, 2);
    if (hour < 0 || hour > 23 || !scalar_take(text, ':')) {
        return false;
    }
    int minute = take_digits(text, 2);
    if (minute < 0 || minute > 59 || !scalar_take(text, ':')) {
        return false;
    }
    int second = take_digits(text, 2); /* no leap seconds: protobuf's time has none */
    *out_seconds = (hour * 60 + minute) * 60 + second;
    return second >= 0 && second <= 59;
}

static bool take_fraction(bay_str *text, int32_t *out_nanos)
{
    *out_nanos = 0;
    if (!scalar_take(text, '.')) {
        return true;
    }
    int32_t unit = 100000000;
    int digit = take_digits(text, 1);
    if (digit < 0) {
        return false;
    }
    for (; digit >= 0; digit = take_digits(text, 1), unit /= 10) {
        *out_nanos += digit * unit;
    }
    return true;
}

static bool take_offset(bay_str *text, int *out_seconds)
{
    *out_seconds = 0;
    if (scalar_take(text, 'Z')) {
        return true;
    }
    int sign = scalar_take(text, '+') ? 1 : scalar_take(text, '-') ? -1 : 0;
    int hours = sign != 0 ? take_digits(text, 2) : -1;
    if (hours < 0 || hours > 23 || !scalar_take(text, ':')) {
        return false;
    }
    int minutes = take_digits(text, 2);
    *out_seconds = sign * (hours * 60 + minutes) * 60;
    return minutes >= 0 && minutes <= 59;
}

/* 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z */
static const int64_t first_second = INT64_C(-62135596800);
static const int64_t last_second = INT64_C(253402300799);

bool a2a_time_read(bay_str text, int64_t *out_seconds, int32_t *out_nanos)
{
    int64_t days;
    int clock;
    int32_t nanos;
    int offset;
    if (!take_date(&text, &days) || !scalar_take(&text, 'T') || !take_clock(&text, &clock) ||
        !take_fraction(&text, &nanos) || !take_offset(&text, &offset) || text.len > 0) {
        return false;
    }
    int64_t seconds = days * 86400 + clock - offset;
    if (seconds < first_second || seconds > last_second) {
        return false;
    }
    *out_seconds = seconds;
    *out_nanos = nanos;
    return true;
}

/* A time that was read has its fields at fixed places; only the T, the fraction and the zone may
 * vary. */
bool a2a_time_is_normal(bay_str text)
{
    return text.len == A2A_TIME_BYTES && text.at[10] == 'T' && text.at[19] == '.' &&
           text.at[A2A_TIME_BYTES - 1] == 'Z';
}

static void put_digits(char *at, int count, int64_t number)
{
    for (int i = count - 1; i >= 0; i--, number /= 10) {
        at[i] = (char)('0' + number % 10);
    }
}

bool a2a_time_write(int64_t seconds, int32_t nanos, char out[A2A_TIME_BYTES])
{
    if (seconds < first_second || seconds > last_second || nanos < 0 || nanos > 999999999) {
        return false;
    }
    int64_t day = (seconds - first_second) / 86400; /* since 0001-01-01 */
    int64_t clock = (seconds - first_second) % 86400;
    day += 306; /* since 0000-03-01 */
    int64_t era = day / 146097;
    int64_t of_era = day % 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153; /* from March */
    memcpy(out, "0000-00-00T00:00:00.000Z", A2A_TIME_BYTES);
    put_digits(out, 4, year + era * 400 + (month >= 10));
    put_digits(out + 5, 2, month < 10 ? month + 3 : month - 9);
    put_digits(out + 8, 2, of_year - (153 * month + 2) / 5 + 1);
    put_digits(out + 11, 2, clock / 3600);
    put_digits(out + 14, 2, clock / 60 % 60);
    put_digits(out + 17, 2, clock % 60);
    put_digits(out + 20, 3, nanos / 1000000);
    return true;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* The value of a digit, and bits for digits that only one alphabet has. */
enum { STANDARD_ONLY = 0x40, URL_ONLY = 0x80, NO_DIGIT = 0xff };

static inline unsigned digit_of(unsigned char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26U;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52U;
    }
    return c == '+'   ? 62U | STANDARD_ONLY
           : c == '/' ? 63U | STANDARD_ONLY
           : c == '-' ? 62U | URL_ONLY
           : c == '_' ? 63U | URL_ONLY
                      : NO_DIGIT;
}

a2a_base64 a2a_base64_of(bay_str text, size_t *out_bytes)
{
    size_t pads = 0;
    while (pads < 2 && pads < text.len && text.at[text.len - 1 - pads] == '=') {
        pads++;
    }
    size_t len = text.len - pads;
    if ((pads > 0 && text.len % 4 != 0) || len % 4 == 1) {
        return A2A_BASE64_NOT;
    }
    unsigned seen = 0;
    unsigned last = 0;
    for (size_t i = 0; i < len; i++) {
        last = digit_of((unsigned char)text.at[i]);
        if (last == NO_DIGIT) {
            return A2A_BASE64_NOT;
        }
        seen |= last;
    }
    /* unused bits of the last digit must be zero: otherwise two texts would have the same bytes */
    unsigned idle = len % 4 == 2 ? 0x0f : len % 4 == 3 ? 0x03 : 0;
    if ((last & idle) != 0 || (seen & (STANDARD_ONLY | URL_ONLY)) == (STANDARD_ONLY | URL_ONLY)) {
        return A2A_BASE64_NOT;
    }
    *out_bytes = len / 4 * 3 + len % 4 * 3 / 4;
    return (seen & URL_ONLY) != 0 || text.len % 4 != 0 ? A2A_BASE64_OTHER : A2A_BASE64_NORMAL;
}

void a2a_base64_put(buf *out, bay_str text)
{
    size_t pads = (4 - text.len % 4) % 4;
    if (text.len > SIZE_MAX - 4 || !buf_reserve(out, text.len + pads)) {
        return;
    }
    char *to = out->at + out->len;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        to[i] = (char)(c == '-' ? '+' : c == '_' ? '/' : c);
    }
    memset(to + text.len, '=', pads);
    out->len += text.len + pads;
}
