/* Dates, times and durations. Source: RFC 3339 section 5.6 and appendix A. */
#include "base/str.h"
#include "schema/format.h"

/* `count` digits at the front of *text, which is advanced past them; -1: there are fewer. */
static int digits(bay_str *text, size_t count)
{
    int number = 0;
    if (text->len < count) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        if (!format_is_digit((unsigned char)text->at[i])) {
            return -1;
        }
        number = number * 10 + (text->at[i] - '0');
    }
    *text = str_from(*text, count);
    return number;
}

static bool format_time_take(bay_str *text, char c)
{
    bool is_there = text->len > 0 && text->at[0] == c;
    *text = str_from(*text, is_there);
    return is_there;
}

static bool take_date(bay_str *text)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = digits(text, 4);
    if (year < 0 || !format_time_take(text, '-')) {
        return false;
    }
    int month = digits(text, 2);
    if (month < 1 || month > 12 || !format_time_take(text, '-')) {
        return false;
    }
    int day = digits(text, 2);
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day >= 1 && day <= days[month - 1] && (month != 2 || day < 29 || is_leap);
}

static bool take_offset(bay_str *text, int *out_minutes)
{
    *out_minutes = 0;
    if (format_time_take(text, 'Z') || format_time_take(text, 'z')) {
        return true;
    }
    int sign = format_time_take(text, '+') ? 1 : format_time_take(text, '-') ? -1 : 0;
    if (sign == 0) {
        return false;
    }
    int hours = digits(text, 2);
    if (hours < 0 || hours > 23 || !format_time_take(text, ':')) {
        return false;
    }
    int minutes = digits(text, 2);
    *out_minutes = sign * (hours * 60 + minutes);
    return minutes >= 0 && minutes <= 59;
}

static bool take_time(bay_str *text)
{
    int hour = digits(text, 2);
    if (hour < 0 || hour > 23 || !format_time_take(text, ':')) {
        return false;
    }
    int minute = digits(text, 2);
    if (minute < 0 || minute > 59 || !format_time_take(text, ':')) {
        return false;
    }
    int second = digits(text, 2);
    if (second < 0 || second > 60) {
        return false;
    }
    if (format_time_take(text, '.')) {
        if (digits(text, 1) < 0) {
            return false;
        }
        while (digits(text, 1) >= 0) {
        }
    }
    int offset;
    if (!take_offset(text, &offset)) {
        return false;
    }
    /* a leap second is the last of a day in UTC */
    int utc = ((hour * 60 + minute - offset) % 1440 + 1440) % 1440;
    return second < 60 || utc == 1439;
}

bool format_date(bay_str text, format_tools *tools)
{
    (void)tools;
    return take_date(&text) && text.len == 0;
}

bool format_time(bay_str text, format_tools *tools)
{
    (void)tools;
    return take_time(&text) && text.len == 0;
}

bool format_date_time(bay_str text, format_tools *tools)
{
    (void)tools;
    return take_date(&text) && (format_time_take(&text, 'T') || format_time_take(&text, 't')) &&
           take_time(&text) && text.len == 0;
}

/* Elements in the order of `units`, each at most once and without gaps. */
static bool take_elements(bay_str *text, const char *units, bool *out_any)
{
    size_t next = 0;
    size_t count = strlen(units);
    *out_any = false;
    while (text->len > 0 && text->at[0] != 'T') {
        if (digits(text, 1) < 0) {
            return false;
        }
        while (digits(text, 1) >= 0) {
        }
        size_t unit = text->len > 0 ? str_find(str_of(units), text->at[0]) : count;
        if (unit >= count || (*out_any ? unit != next : unit < next)) {
            return false;
        }
        *text = str_from(*text, 1);
        *out_any = true;
        next = unit + 1;
    }
    return true;
}

bool format_duration(bay_str text, format_tools *tools)
{
    (void)tools;
    bool has_date = false;
    bool has_time = false;
    if (!format_time_take(&text, 'P')) {
        return false;
    }
    if (str_ends(text, STR("W"))) {
        text.len--;
        bool has_weeks = text.len > 0;
        while (digits(&text, 1) >= 0) {
        }
        return has_weeks && text.len == 0;
    }
    if (!take_elements(&text, "YMD", &has_date)) {
        return false;
    }
    if (format_time_take(&text, 'T') && (!take_elements(&text, "HMS", &has_time) || !has_time)) {
        return false;
    }
    return text.len == 0 && (has_date || has_time);
}
