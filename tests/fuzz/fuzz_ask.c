/* fuzz_ask.c - the bodies of requests to the lease service: what is accepted lies within the limits of the
 * contract and can be packed for the scripts and read again; what is refused says what is wrong. */
#include <assert.h>
#include <stdlib.h>

#include "lease/acquire_options.h"
#include "lease/request.h"
#include "shared/text/json.h"
#include "shared/token/keys.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_wrong(const struct ask_wrong *wrong)
{
    size_t len = strnlen(wrong->detail, sizeof(wrong->detail));

    assert(wrong->problem == PROBLEM_INVALID_REQUEST || wrong->problem == PROBLEM_OUT_OF_RANGE);
    assert(len > 10 && len < sizeof(wrong->detail));
}

static void check_ask(const struct lease_ask *ask)
{
    assert(ask->ttl_ms == 0 || (ask->ttl_ms >= 100 && ask->ttl_ms <= 86400000));
    assert(ask->ttl_stated == (ask->ttl_ms != 0));
    assert(ask->wait_ms >= 0 && ask->wait_ms <= 600000);
    assert(ask->lock_delay_ms >= 0 && ask->lock_delay_ms <= 600000);
    assert((ask->mode == TOKEN_PERMITS) == (ask->permits != 0));
    assert(ask->permits == 0 || (ask->permits >= 2 && ask->permits <= 1000000));
    assert(ask->lease_id_len == 0 || name_is_lease_id((struct bytes){ask->lease_id, ask->lease_id_len}));
    assert(ask->holder_len == 0 || name_is_holder((struct bytes){ask->holder, ask->holder_len}));
    assert(ask->session_len == 0 || ask_is_session_id((struct bytes){ask->session, ask->session_len}));
    assert(ask->meta_len <= ASK_META_MAX);
}

static void check_names(const struct ask_names *names)
{
    assert(names->count >= 1 && names->count <= ASK_NAMES_MAX);
    for (unsigned i = 0; i < names->count; i++) {
        assert(name_is_lease(names->name[i]));
        for (unsigned j = 0; j < i; j++)
            assert(!bytes_equal(names->name[i], names->name[j]));
    }
}

static void check_packed(const struct lease_ask *ask, const struct ask_names *names)
{
    static char buf[ACQUIRE_OPTIONS_ALL_SIZE];
    struct acquire_options acquire_options = {{BYTES("\"\\key"), "dddddddddddddddddddddddd"},
                                              "0123456789012345678901"};
    struct bytes packed = acquire_options_write(
        &acquire_options, ask, BYTES("pawl:{00}:d:0123456789abcdef"), 7, names, buf,
        names != NULL ? ACQUIRE_OPTIONS_ALL_SIZE : ACQUIRE_OPTIONS_SIZE);
    const char *why;
    struct json *json = json_parse(packed, 3, &why);
    enum json_found found;
    struct bytes key;

    assert(json != NULL);
    assert(json_get_text(json, "key", &key) == JSON_FOUND && bytes_are(key, "\"\\key"));
    assert(json_list_count(json, "all", &found) == (names != NULL ? names->count : 0));
    json_free(json);
}

static void try_one(struct bytes body)
{
    struct lease_ask ask = {0}, session = {0}, renew = {0};
    struct force_ask force = {0};
    struct ask_wrong wrong;

    lease_ask_read(body, &ask, &wrong);
    if (wrong.problem == PROBLEM_NONE) {
        check_ask(&ask);
        check_packed(&ask, NULL);
    } else {
        check_wrong(&wrong);
    }
    session_ask_read(body, &session, &wrong);
    if (wrong.problem == PROBLEM_NONE)
        check_ask(&session);
    renew_ask_read(body, &renew, &wrong);
    if (wrong.problem == PROBLEM_NONE)
        assert(renew.ttl_ms == 0 || renew.ttl_ms >= 100);
    force_ask_read(body, &force, &wrong);
    if (wrong.problem == PROBLEM_NONE) {
        assert(force.expect_token >= 0 && force.expect_token <= TOKEN_NUMBER_MAX);
        assert(force.reason_len == 0 || name_is_reason((struct bytes){force.reason, force.reason_len}));
    }
}

static void try_all(struct bytes body)
{
    static struct ask_names names;
    struct lease_ask ask = {0};
    struct ask_wrong wrong;

    names.count = 0;
    lease_ask_all_read(body, &ask, &names, &wrong);
    if (wrong.problem != PROBLEM_NONE) {
        check_wrong(&wrong);
        return;
    }
    check_ask(&ask);
    check_names(&names);
    check_packed(&ask, &names);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct bytes body = {(const char *)data, size < ASK_BODY_MAX ? size : ASK_BODY_MAX};

    try_one(body);
    try_all(body);
    return 0;
}
