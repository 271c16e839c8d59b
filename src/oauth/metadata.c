#include "oauth/metadata.h"

#include <stdio.h>

#include "base/err.h"
#include "wire/uri.h"

static const char *const well_known[] = {"/.well-known/oauth-authorization-server",
                                         "/.well-known/openid-configuration"};

bool oauth_metadata_url(bay_str issuer, size_t nth, buf *out)
{
    uri parts;
    if (uri_parse(&parts, issuer) != BAY_OK || parts.host.len == 0 || parts.has_query ||
        parts.has_fragment || parts.has_userinfo) {
        return false;
    }
    bay_str path = parts.path;
    bay_str origin = str_head(issuer, issuer.len - path.len);
    while (path.len > 0 && path.at[path.len - 1] == '/') {
        path.len--; /* RFC 8414 section 3.1: a terminating '/' goes first */
    }
    if (nth >= (path.len > 0 ? OAUTH_METADATA_URLS : 2)) {
        return false;
    }
    buf_str(out, origin);
    if (nth < 2) {
        buf_str(out, str_of(well_known[nth]));
        buf_str(out, path);
    } else {
        buf_str(out, path);
        buf_str(out, str_of(well_known[1]));
    }
    return out->err == BAY_OK;
}

void oauth_metadata_init(oauth_metadata *self, oauth_source *source)
{
    *self = (oauth_metadata){.next = 0};
    oauth_document_init(&self->document, source);
    buf_init(&self->issuer, OAUTH_URL_BYTES);
    buf_init(&self->url, 2 * OAUTH_URL_BYTES);
}

void oauth_metadata_fini(oauth_metadata *self)
{
    oauth_document_fini(&self->document);
    buf_fini(&self->issuer);
    buf_fini(&self->url);
}

static void metadata_fail(oauth_metadata *self, bay_err err, const char *text)
{
    snprintf(self->text, sizeof(self->text), "its metadata (%.*s): %.90s",
             (int)(self->url.len < 90 ? self->url.len : 90), self->url.at, text);
    self->done(self->user, err, JSON_NONE, self->text);
}

static void on_document(void *user, const oauth_answer *answer);

/* BAY_ERR_NOT_FOUND: no address is left. */
static bay_err ask_next(oauth_metadata *self, bay_diag *diag)
{
    buf_clear(&self->url);
    if (!oauth_metadata_url(buf_view(&self->issuer), self->next, &self->url)) {
        return self->url.err != BAY_OK ? self->url.err : BAY_ERR_NOT_FOUND;
    }
    self->next++;
    oauth_request request = {.url = buf_view(&self->url)};
    return oauth_document_start(&self->document, &request, on_document, self, diag);
}

static void on_document(void *user, const oauth_answer *answer)
{
    oauth_metadata *self = user;
    bay_diag diag = {0};
    char status[40];
    if (answer->err != BAY_OK) {
        metadata_fail(self, answer->err, answer->text);
        return;
    }
    if (answer->status >= 400 && answer->status < 500) {
        bay_err err = ask_next(self, &diag);
        if (err == BAY_ERR_NOT_FOUND) {
            metadata_fail(self, err, "there is none, at none of the well-known addresses");
        } else if (err != BAY_OK) {
            metadata_fail(self, err, diag.text[0] != '\0' ? diag.text : bay_err_text(err));
        }
        return;
    }
    if (answer->status != 200 || !json_is(answer->root, JSON_OBJECT)) {
        snprintf(status, sizeof(status), "status %d", answer->status);
        metadata_fail(self, BAY_ERR_PROTOCOL, answer->status != 200 ? status : answer->text);
        return;
    }
    /* RFC 8414 section 3.3: identical, or it must not be used; no normalisation */
    if (!json_str_eq(json_get(answer->root, STR("issuer")), buf_view(&self->issuer))) {
        metadata_fail(self, BAY_ERR_DENIED, "it names another issuer");
        return;
    }
    self->done(self->user, BAY_OK, answer->root, "");
}

bay_err oauth_metadata_start(oauth_metadata *self, bay_str issuer, oauth_metadata_done done,
                             void *user, bay_diag *diag)
{
    self->done = done;
    self->user = user;
    self->next = 0;
    buf_clear(&self->issuer);
    buf_str(&self->issuer, issuer);
    bay_err err = self->issuer.err != BAY_OK ? self->issuer.err : ask_next(self, diag);
    return err == BAY_ERR_NOT_FOUND ? diag_set(diag, BAY_ERR_INVALID,
                                               "the issuer is no URL with a host, without a query")
                                    : err;
}
