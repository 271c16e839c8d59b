/* Numbers are kept as text and converted only to types that represent them exactly. */
#include <math.h>
#include <stdlib.h>

#include "base/str.h"
#include "json/decimal.h"
#include "json/json.h"

json_decimal json_decimal_of(bay_str text)
{
    json_decimal self = {0};
    if (text.len > 0 && text.at[0] == '-') {
        self.is_negative = true;
        text = str_from(text, 1);
    }
    size_t mantissa = 0;
    size_t first = SIZE_MAX; /* the significant digits: first <= i <= last */
    size_t last = 0;
    size_t point = SIZE_MAX;
    while (mantissa < text.len && (text.at[mantissa] | 0x20) != 'e') {
        char c = text.at[mantissa];
        if (c == '.') {
            point = mantissa;
        } else if (c != '0') {
            first = first == SIZE_MAX ? mantissa : first;
            last = mantissa;
        }
        mantissa++;
    }
    if (first == SIZE_MAX) {
        return self;
    }
    point = point == SIZE_MAX ? mantissa : point;
    self.digits = (bay_str){text.at + first, last - first + 1};
    bool has_point_inside = point > first && point < last;
    self.count = self.digits.len - has_point_inside;
    self.point = point > first ? (int64_t)(point - first) : -(int64_t)(first - point - 1);

    bay_str exponent = str_from(text, mantissa + 1);
    if (exponent.len > 0 && (exponent.at[0] == '-' || exponent.at[0] == '+')) {
        self.is_exponent_negative = exponent.at[0] == '-';
        exponent = str_from(exponent, 1);
    }
    while (exponent.len > 0 && exponent.at[0] == '0') {
        exponent = str_from(exponent, 1);
    }
    self.exponent = exponent;
    return self;
}

int64_t json_decimal_magnitude(const json_decimal *self)
{
    int64_t exponent = 0;
    for (size_t i = 0; i < self->exponent.len; i++) {
        exponent = exponent * 10 + (self->exponent.at[i] - '0');
        if (exponent > INT64_C(1000000000000000000) / 10) {
            exponent = INT64_C(1000000000000000000);
            break;
        }
    }
    return self->point + (self->is_exponent_negative ? -exponent : exponent);
}

/* The absolute value, if it is an integer below 2^64. */
static bool magnitude_of(const json_decimal *decimal, uint64_t *out)
{
    uint64_t number = 0;
    int64_t places = json_decimal_magnitude(decimal); /* digits before the point */
    if (decimal->digits.len == 0) {
        *out = 0;
        return true;
    }
    if (places < 0 || places > 20 || (uint64_t)places < decimal->count) {
        return false;
    }
    for (size_t i = 0; i < decimal->digits.len; i++) {
        char c = decimal->digits.at[i];
        if (c != '.' && (__builtin_mul_overflow(number, (uint64_t)10, &number) ||
                         __builtin_add_overflow(number, (uint64_t)(c - '0'), &number))) {
            return false;
        }
    }
    for (uint64_t zeros = (uint64_t)places - decimal->count; zeros > 0; zeros--) {
        if (__builtin_mul_overflow(number, (uint64_t)10, &number)) {
            return false;
        }
    }
    *out = number;
    return true;
}

bay_err json_uint64(json_val value, uint64_t *out)
{
    if (!json_is(value, JSON_NUMBER)) {
        return BAY_ERR_TYPE;
    }
    json_decimal decimal = json_decimal_of(json_raw(value));
    uint64_t number;
    if (!magnitude_of(&decimal, &number) || (decimal.is_negative && number != 0)) {
        return BAY_ERR_RANGE;
    }
    *out = number;
    return BAY_OK;
}

bay_err json_int64(json_val value, int64_t *out)
{
    if (!json_is(value, JSON_NUMBER)) {
        return BAY_ERR_TYPE;
    }
    json_decimal decimal = json_decimal_of(json_raw(value));
    uint64_t number;
    if (!magnitude_of(&decimal, &number) ||
        number > (uint64_t)INT64_MAX + (decimal.is_negative ? 1 : 0)) {
        return BAY_ERR_RANGE;
    }
    *out = (int64_t)(decimal.is_negative ? (uint64_t)0 - number : number);
    return BAY_OK;
}

bool json_is_integer(json_val value)
{
    if (!json_is(value, JSON_NUMBER)) {
        return false;
    }
    bay_str raw = json_raw(value);
    size_t digits = raw.at[0] == '-';
    while (digits < raw.len && raw.at[digits] >= '0' && raw.at[digits] <= '9') {
        digits++;
    }
    if (digits == raw.len) {
        return true; /* the most frequent form */
    }
    json_decimal decimal = json_decimal_of(raw);
    int64_t places = json_decimal_magnitude(&decimal);
    return decimal.digits.len == 0 || (places >= 0 && (uint64_t)places >= decimal.count);
}

/* Rounds by strtod, on a text without a decimal point, so that the process's locale has no effect.
 * Digits after the 768th distinguish two doubles only by not being zero. */
static double round_slowly(const json_decimal *decimal, int64_t places)
{
    enum { DIGITS = 800 };
    char text[DIGITS + 32];
    size_t len = 0;
    for (size_t i = 0; i < decimal->digits.len && len < DIGITS; i++) {
        if (decimal->digits.at[i] != '.') {
            text[len++] = decimal->digits.at[i];
        }
    }
    if (len < decimal->count) {
        text[len++] = '1';
    }
    int64_t exponent = places - (int64_t)len;
    text[len++] = 'e';
    if (exponent < 0) {
        text[len++] = '-';
        exponent = -exponent;
    }
    char reversed[24];
    size_t count = 0;
    do {
        reversed[count++] = (char)('0' + exponent % 10);
        exponent /= 10;
    } while (exponent > 0);
    while (count > 0) {
        text[len++] = reversed[--count];
    }
    text[len] = '\0';
    return strtod(text, NULL);
}

bay_err json_double(json_val value, double *out)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (!json_is(value, JSON_NUMBER)) {
        return BAY_ERR_TYPE;
    }
    json_decimal decimal = json_decimal_of(json_raw(value));
    int64_t places = json_decimal_magnitude(&decimal);
    double number = 0;
    if (decimal.digits.len > 0 && places > 400) {
        return BAY_ERR_RANGE;
    }
    int64_t exponent = places - (int64_t)decimal.count;
    if (decimal.digits.len > 0 && decimal.count <= 15 && exponent >= -22 && exponent <= 22) {
        /* both factors are exact, so the single operation rounds correctly */
        int64_t digits = 0;
        for (size_t i = 0; i < decimal.digits.len; i++) {
            char c = decimal.digits.at[i];
            digits = c == '.' ? digits : digits * 10 + (c - '0');
        }
        number = exponent < 0 ? (double)digits / tens[-exponent] : (double)digits * tens[exponent];
    } else if (decimal.digits.len > 0 && places > -400) {
        number = round_slowly(&decimal, places);
    }
    if (isinf(number)) {
        return BAY_ERR_RANGE;
    }
    *out = decimal.is_negative ? -number : number;
    return BAY_OK;
}

/* a's magnitude minus b's, limited to about ±2^56. The exponents may be arbitrarily long, so the
 * difference is formed digit by digit: once it is large it only grows, and no shift of the point
 * compensates for it. */
static int64_t magnitude_difference(const json_decimal *a, const json_decimal *b)
{
    const int64_t large = (int64_t)1 << 56;
    size_t len = a->exponent.len > b->exponent.len ? a->exponent.len : b->exponent.len;
    int64_t difference = 0;
    for (size_t i = len; i > 0; i--) {
        int64_t left = i <= a->exponent.len ? a->exponent.at[a->exponent.len - i] - '0' : 0;
        int64_t right = i <= b->exponent.len ? b->exponent.at[b->exponent.len - i] - '0' : 0;
        left = a->is_exponent_negative ? -left : left;
        right = b->is_exponent_negative ? -right : right;
        difference = difference * 10 + left - right;
        if (difference > large || difference < -large) {
            return difference;
        }
    }
    return difference + a->point - b->point;
}

bool json_number_eq(bay_str a, bay_str b)
{
    json_decimal left = json_decimal_of(a);
    json_decimal right = json_decimal_of(b);
    if (left.digits.len == 0 || right.digits.len == 0) {
        return left.digits.len == right.digits.len; /* -0 is 0 */
    }
    if (left.is_negative != right.is_negative || left.count != right.count ||
        magnitude_difference(&left, &right) != 0) {
        return false;
    }
    size_t i = 0;
    size_t j = 0;
    for (size_t n = 0; n < left.count; n++, i++, j++) {
        i += left.digits.at[i] == '.';
        j += right.digits.at[j] == '.';
        if (left.digits.at[i] != right.digits.at[j]) {
            return false;
        }
    }
    return true;
}

/* For two numbers of the same magnitude: the first digit that differs decides, then the length. */
static int cmp_digits(const json_decimal *a, const json_decimal *b)
{
    size_t i = 0;
    size_t j = 0;
    size_t count = a->count < b->count ? a->count : b->count;
    for (size_t n = 0; n < count; n++, i++, j++) {
        i += a->digits.at[i] == '.';
        j += b->digits.at[j] == '.';
        if (a->digits.at[i] != b->digits.at[j]) {
            return a->digits.at[i] < b->digits.at[j] ? -1 : 1;
        }
    }
    return a->count < b->count ? -1 : a->count > b->count;
}

int json_number_cmp(bay_str a, bay_str b)
{
    json_decimal left = json_decimal_of(a);
    json_decimal right = json_decimal_of(b);
    int left_sign = left.digits.len == 0 ? 0 : left.is_negative ? -1 : 1;
    int right_sign = right.digits.len == 0 ? 0 : right.is_negative ? -1 : 1;
    if (left_sign != right_sign || left_sign == 0) {
        return left_sign - right_sign;
    }
    int64_t difference = magnitude_difference(&left, &right);
    int order = difference < 0 ? -1 : difference > 0 ? 1 : cmp_digits(&left, &right);
    return left_sign < 0 ? -order : order;
}

static uint64_t multiply_modulo(uint64_t a, uint64_t b, uint64_t modulus)
{
    return (uint64_t)((unsigned __int128)a * b % modulus);
}

/* Both numbers are written as integers X and S times powers of ten, neither ending in a zero digit.
 * Then X × 10^n must be divisible by S. For n < 0 it is not; otherwise the remainder is calculated
 * digit by digit and then for the n zeros. (n is limited to 10^18, which has no effect: sixty zeros
 * contain all factors two and five that S can have.) */
bay_err json_number_is_multiple(bay_str number, bay_str step, bool *out)
{
    enum { MOST_DIGITS = 18 };
    json_decimal left = json_decimal_of(number);
    json_decimal right = json_decimal_of(step);
    if (right.digits.len == 0 || right.is_negative || right.count > MOST_DIGITS) {
        return BAY_ERR_RANGE;
    }
    if (left.digits.len == 0) {
        *out = true;
        return BAY_OK;
    }
    int64_t zeros =
        magnitude_difference(&left, &right) - (int64_t)left.count + (int64_t)right.count;
    if (zeros < 0) {
        *out = false;
        return BAY_OK;
    }
    uint64_t modulus = 0;
    for (size_t i = 0; i < right.digits.len; i++) {
        char c = right.digits.at[i];
        modulus = c == '.' ? modulus : modulus * 10 + (uint64_t)(c - '0');
    }
    uint64_t remainder = 0;
    for (size_t i = 0; i < left.digits.len; i++) {
        char c = left.digits.at[i];
        remainder = c == '.' ? remainder : (remainder * 10 + (uint64_t)(c - '0')) % modulus;
    }
    uint64_t power = 10 % modulus;
    for (; zeros > 0; zeros >>= 1) {
        if ((zeros & 1) != 0) {
            remainder = multiply_modulo(remainder, power, modulus);
        }
        power = multiply_modulo(power, power, modulus);
    }
    *out = remainder == 0;
    return BAY_OK;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    unsigned __int128 product =
        (unsigned __int128)(hash ^ 0x9e3779b97f4a7c15U) * (word ^ 0xe7037ed1a0b428dbU);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t json_number_hash(bay_str text, uint64_t seed)
{
    json_decimal decimal = json_decimal_of(text);
    if (decimal.digits.len == 0) {
        return mix(seed, 0);
    }
    const int64_t far = (int64_t)1 << 50; /* the limit of magnitudes: no effect on the result */
    int64_t magnitude = json_decimal_magnitude(&decimal);
    magnitude = magnitude > far ? far : magnitude < -far ? -far : magnitude;
    uint64_t hash = mix(seed, (uint64_t)magnitude * 2 + decimal.is_negative);
    uint64_t word = 0;
    size_t taken = 0;
    for (size_t i = 0; i < decimal.digits.len; i++) {
        if (decimal.digits.at[i] == '.') {
            continue;
        }
        word = word * 10 + (uint64_t)(decimal.digits.at[i] - '0');
        if (++taken % 16 == 0) {
            hash = mix(hash, word);
            word = 0;
        }
    }
    return mix(hash, word + 1);
}
