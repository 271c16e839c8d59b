/* JSON and tables of fields for C++17: the lower half of patchbay.hpp, which has the rules for both.
 *
 *     patchbay::json made = patchbay::object({{"city", city}, {"celsius", 17}});
 *     patchbay::table input{patchbay::integer("days").min(1).max(14).default_value(3)}; */
#ifndef PATCHBAY_JSON_HPP
#define PATCHBAY_JSON_HPP

#if __cplusplus < 201703L
#error "Patchbay's C++ headers need C++17"
#endif

#include <patchbay/json.h>
#include <patchbay/library.h>
#include <patchbay/schema.h>

#include <deque>
#include <exception>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace patchbay {

// ---- texts and errors ---------------------------------------------------------------------------

inline std::string_view view(bay_str text) noexcept
{
    return text.len > 0 ? std::string_view(text.at, text.len) : std::string_view();
}

inline bay_str str(std::string_view text) noexcept
{
    return {text.data(), text.size()};
}

// A text that ends in NUL, for the length of a call. A NUL inside, where C would end and mean another
// text, becomes U+FFFD.
class zstring {
  public:
    zstring(const char *text) noexcept : at_(text) {}
    zstring(const std::string &text)
        : copy_(has_nul(text) ? without_nul(text) : std::string()),
          at_(has_nul(text) ? copy_.c_str() : text.c_str())
    {
    }
    zstring(std::string_view text) : copy_(without_nul(text)), at_(copy_.c_str()) {}
    zstring(const zstring &) = delete;
    zstring &operator=(const zstring &) = delete;
    operator const char *() const noexcept { return at_; }

  private:
    static bool has_nul(std::string_view text) noexcept
    {
        return text.find('\0') != std::string_view::npos;
    }
    static std::string without_nul(std::string_view text)
    {
        std::string made(text);
        for (size_t at = 0; (at = made.find('\0', at)) != std::string::npos;) {
            made.replace(at, 1, "\xEF\xBF\xBD");
        }
        return made;
    }
    std::string copy_;
    const char *at_;
};

// What went wrong, if anything did: `if (error) …`.
class error {
  public:
    explicit operator bool() const noexcept { return diag_.code != BAY_OK; }
    bay_err code() const noexcept { return diag_.code; }
    std::string_view text() const noexcept
    {
        return diag_.text[0] != '\0' ? diag_.text : bay_err_text(diag_.code);
    }
    bay_diag *get() noexcept { return &diag_; }
    bool set(bay_err code) noexcept // is it none?
    {
        diag_.code = code;
        return code == BAY_OK;
    }

  private:
    bay_diag diag_ = {};
};

namespace detail {

template <auto Free> struct freer {
    template <class T> void operator()(T *one) const noexcept { Free(one); }
};
template <class T, auto Free> using owned = std::unique_ptr<T, freer<Free>>;

// Runs what a program wrote. What it throws ends here, and `failed` says what becomes of it.
template <class Run, class Failed> void guard(const char *what, Run run, Failed failed) noexcept
{
#if defined(__cpp_exceptions)
    try {
        run();
        return;
    } catch (const std::exception &thrown) {
        bay_log(BAY_LOG_LEVEL_ERROR, what, thrown.what());
    } catch (...) {
        bay_log(BAY_LOG_LEVEL_ERROR, what, "something was thrown that is no std::exception");
    }
    failed();
#else
    (void)what;
    (void)failed;
    run();
#endif
}

// An error of the caller's, or one that nobody looks at. What an earlier call left in it is forgotten.
class errors {
  public:
    explicit errors(error *out) noexcept : at_(out != nullptr ? out : &none_) { *at_ = error(); }
    bay_diag *get() noexcept { return at_->get(); }
    bool good(bay_err code) noexcept { return at_->set(code); }

  private:
    error none_;
    error *at_;
};

} // namespace detail

// ---- JSON ---------------------------------------------------------------------------------------

// One value of a text that is read; `if (value) …`: it is there.
class value {
  public:
    value(bay_value at = {}) noexcept : at_(at) {}
    explicit operator bool() const noexcept { return type() != BAY_TYPE_NONE; }
    bay_type type() const noexcept { return bay_value_type(at_); }
    value operator[](std::string_view name) const noexcept
    {
        return bay_value_get_str(at_, patchbay::str(name));
    }
    value operator[](const char *name) const noexcept { return bay_value_get(at_, name); }
    value at(size_t index) const noexcept { return bay_value_item(at_, index); }
    value pointer(zstring path) const noexcept { return bay_value_pointer(at_, path); }
    size_t count() const noexcept { return bay_value_count(at_); }
    std::string_view str() const noexcept { return view(bay_value_str(at_)); }
    std::string_view json() const noexcept { return view(bay_value_json(at_)); }
    int64_t int_or(int64_t fallback) const noexcept { return bay_value_int_or(at_, fallback); }
    double double_or(double fallback) const noexcept { return bay_value_double_or(at_, fallback); }
    bool bool_or(bool fallback) const noexcept { return bay_value_bool_or(at_, fallback); }
    bay_value get() const noexcept { return at_; }

    // for (auto [name, one] : value) …; of an array the names are empty
    struct member;
    class iterator {
      public:
        explicit iterator(bay_value of) noexcept : of_(of), is_end_(!bay_value_next(of, &iter_)) {}
        iterator() noexcept : of_(), is_end_(true) {}
        inline member operator*() const noexcept;
        iterator &operator++() noexcept
        {
            is_end_ = !bay_value_next(of_, &iter_);
            return *this;
        }
        bool operator!=(const iterator &other) const noexcept { return is_end_ != other.is_end_; }

      private:
        bay_value of_;
        bay_iter iter_ = {};
        bool is_end_;
    };
    iterator begin() const noexcept { return iterator(at_); }
    iterator end() const noexcept { return iterator(); }

  private:
    bay_value at_;
};

struct value::member {
    std::string_view name;
    value at;
};

inline value::member value::iterator::operator*() const noexcept
{
    return {patchbay::view(iter_.name), value(iter_.value)};
}

// JSON that is written. `put` adds a member, `add` an item; whatever they are given, no value adds
// or changes another member.
class json {
  public:
    json() : json_(bay_json_new()) {}
    explicit json(std::string_view text) : json_(bay_json_of_str(patchbay::str(text))) {}

    json &object(const char *name = nullptr) { return bay_json_object(get(), name), *this; }
    json &array(const char *name = nullptr) { return bay_json_array(get(), name), *this; }
    json &end() { return bay_json_end(get()), *this; }
    template <class T> json &put(const char *name, const T &one) { return write(name, one), *this; }
    template <class T> json &put(std::string_view name, const T &one)
    {
        bay_json_name(get(), patchbay::str(name));
        return add(one);
    }
    template <class T> json &add(const T &one) { return write(nullptr, one), *this; }

    bay_err error() const noexcept { return bay_json_error(get()); }
    std::string_view view() const noexcept { return patchbay::view(bay_json_view(get())); }
    value root() const noexcept { return bay_json_root(get()); }
    bay_json *get() const noexcept { return json_.get(); }
    bay_json *release() noexcept { return json_.release(); }

  private:
    template <class T> void write(const char *name, const T &one)
    {
        if constexpr (std::is_same_v<T, bool>) {
            bay_json_bool(get(), name, one);
        } else if constexpr (std::is_null_pointer_v<T>) {
            bay_json_null(get(), name);
        } else if constexpr (std::is_floating_point_v<T>) {
            bay_json_double(get(), name, static_cast<double>(one));
        } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
            bay_json_int(get(), name, one);
        } else if constexpr (std::is_integral_v<T>) {
            bay_json_uint(get(), name, one);
        } else if constexpr (std::is_same_v<T, value>) {
            bay_json_value(get(), name, one.get());
        } else if constexpr (std::is_same_v<T, json>) {
            bay_json_value(get(), name, bay_json_root(one.get()));
        } else if constexpr (std::is_convertible_v<const T &, const char *>) {
            bay_json_text(get(), name, one);
        } else {
            bay_json_text_str(get(), name, patchbay::str(std::string_view(one)));
        }
    }
    detail::owned<bay_json, bay_json_free> json_;
};

// A member of object({{"city", city}, {"celsius", 17}}); what it is given lives as long as the
// expression.
class member {
  public:
    template <class T>
    member(const char *name, const T &one)
        : name_(name), at_(&one), put_([](json &to, const char *called, const void *at) {
              to.put(called, *static_cast<const T *>(at));
          })
    {
    }
    void put(json &to) const { put_(to, name_, at_); }

  private:
    const char *name_;
    const void *at_;
    void (*put_)(json &to, const char *name, const void *at);
};

inline json object(std::initializer_list<member> members)
{
    json made;
    made.object();
    for (const member &one : members) {
        one.put(made);
    }
    made.end();
    return made;
}

// The program's own JSON text, to be read; the text must outlive it.
class document {
  public:
    explicit document(std::string_view text, error *out = nullptr)
    {
        detail::errors errors(out);
        bay_document *made = nullptr;
        if (errors.good(bay_document_new(str(text), &made, errors.get()))) {
            document_.reset(made);
        }
    }
    value root() const noexcept { return bay_document_root(document_.get()); }

  private:
    detail::owned<bay_document, bay_document_free> document_;
};

// Texts and numbers in a row, as one text.
template <class... T> std::string text(const T &...parts)
{
    std::string made;
    auto append = [&made](const auto &one) {
        if constexpr (std::is_convertible_v<decltype(one), std::string_view>) {
            made += std::string_view(one);
        } else {
            made += json().add(one).view();
        }
    };
    (append(parts), ...);
    return made;
}

// ---- fields -------------------------------------------------------------------------------------

// A row of a table, see patchbay/schema.h: string("city", "Which").required(). Numbers and choices
// are given as they are.
class field {
  public:
    field(std::string name, bay_type type, std::string description)
        : name_(std::move(name)), type_(type), description_(std::move(description))
    {
    }
    field &required(bool is_required = true) { return is_required_ = is_required, *this; }
    template <class T> field &default_value(const T &one) { return set(default_, one); }
    template <class T> field &min(const T &one) { return set(min_, one); }
    template <class T> field &max(const T &one) { return set(max_, one); }
    template <class T> field &above(const T &one) { return set(above_, one); }
    template <class T> field &below(const T &one) { return set(below_, one); }
    field &choices(std::initializer_list<std::string> all) { return choices_ = all, *this; }
    field &choice_titles(std::initializer_list<std::string> all) { return titles_ = all, *this; }
    field &pattern(std::string text) { return pattern_ = std::move(text), *this; }
    field &format(std::string text) { return format_ = std::move(text), *this; }
    field &title(std::string text) { return title_ = std::move(text), *this; }
    field &header(std::string text) { return header_ = std::move(text), *this; }
    field &items(const field &one) { return inner_.assign(1, one), *this; }
    field &fields(std::initializer_list<field> all) { return inner_ = all, *this; }

  private:
    friend class table;
    template <class T> field &set(std::string &to, const T &one)
    {
        if constexpr (std::is_convertible_v<const T &, std::string_view> &&
                      !std::is_null_pointer_v<T>) {
            to = std::string_view(one);
        } else {
            to = json().add(one).view(); // as JSON has it, whatever the locale
        }
        has_ |= bit(to);
        return *this;
    }
    unsigned bit(const std::string &of) const
    {
        const std::string *const all[] = {&default_, &min_, &max_, &above_, &below_};
        unsigned at = 0;
        while (all[at] != &of) {
            at++;
        }
        return 1U << at;
    }

    std::string name_;
    bay_type type_;
    std::string description_, default_, min_, max_, above_, below_;
    std::string pattern_, format_, title_, header_;
    std::vector<std::string> choices_, titles_;
    std::vector<field> inner_;
    unsigned has_ = 0; // of default_ to below_: given, also where it is empty
    bool is_required_ = false;
};

inline field string(std::string name, std::string description = {})
{
    return {std::move(name), BAY_TYPE_STRING, std::move(description)};
}
inline field integer(std::string name, std::string description = {})
{
    return {std::move(name), BAY_TYPE_INTEGER, std::move(description)};
}
inline field number(std::string name, std::string description = {})
{
    return {std::move(name), BAY_TYPE_NUMBER, std::move(description)};
}
inline field boolean(std::string name, std::string description = {})
{
    return {std::move(name), BAY_TYPE_BOOLEAN, std::move(description)};
}
inline field array(std::string name, const field &items, std::string description = {})
{
    return field(std::move(name), BAY_TYPE_ARRAY, std::move(description)).items(items);
}
inline field object(std::string name, std::initializer_list<field> fields,
                    std::string description = {})
{
    return field(std::move(name), BAY_TYPE_OBJECT, std::move(description)).fields(fields);
}

// Fields as the C functions take them; {} is none.
class table {
  public:
    table(std::initializer_list<field> fields) : table(std::vector<field>(fields)) {}
    explicit table(std::vector<field> fields) : fields_(std::move(fields)), first_(rows(fields_)) {}
    table(const table &) = delete;
    table &operator=(const table &) = delete;
    const bay_field *get() const noexcept { return first_; }

  private:
    static const char *text(const std::string &one) { return one.empty() ? nullptr : one.c_str(); }
    const char *const *list(const std::vector<std::string> &all)
    {
        if (all.empty()) {
            return nullptr;
        }
        std::vector<const char *> &made = lists_.emplace_back();
        for (const std::string &one : all) {
            made.push_back(one.c_str());
        }
        made.push_back(nullptr);
        return made.data();
    }
    const bay_field *rows(const std::vector<field> &fields)
    {
        std::vector<bay_field> made;
        for (const field &one : fields) {
            made.push_back(row(one));
        }
        made.push_back({});
        return rows_.emplace_back(std::move(made)).data();
    }
    bay_field row(const field &one)
    {
        auto given = [&one](const std::string &what) {
            return (one.has_ & one.bit(what)) != 0 ? what.c_str() : nullptr;
        };
        bay_field made = {};
        made.name = one.name_.c_str();
        made.type = one.type_;
        made.description = text(one.description_);
        made.is_required = one.is_required_;
        made.default_value = given(one.default_);
        made.min = given(one.min_);
        made.max = given(one.max_);
        made.above = given(one.above_);
        made.below = given(one.below_);
        made.choices = list(one.choices_);
        made.choice_titles = list(one.titles_);
        made.pattern = text(one.pattern_);
        made.format = text(one.format_);
        made.title = text(one.title_);
        made.header = text(one.header_);
        if (!one.inner_.empty()) {
            (one.type_ == BAY_TYPE_ARRAY ? made.items : made.fields) = rows(one.inner_);
        }
        return made;
    }
    std::vector<field> fields_;
    std::deque<std::vector<const char *>> lists_;
    std::deque<std::vector<bay_field>> rows_;
    const bay_field *first_;
};

} // namespace patchbay

#endif
