/* fuzz_request.c - bodies of requests to the lease service: what is accepted lies within the limits of the
 * contract and can be packed for the scripts and read again; what is refused says what is wrong. */
#include <assert.h>
#include <stdlib.h>

#include "lease/request.h"
#include "shared/text/json.h"
#include "shared/token/keys.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check_wrong(const struct request_fault *fault)
{
    size_t len = strnlen(fault->detail, sizeof(fault->detail));

    assert(fault->problem == PROBLEM_INVALID_REQUEST || fault->problem == PROBLEM_OUT_OF_RANGE);
    assert(len > 10 && len < sizeof(fault->detail));
}

static void check_ask(const struct lease_request *request)
{
    assert(request->ttl_ms == 0 || (request->ttl_ms >= 100 && request->ttl_ms <= 86400000));
    assert(request->ttl_stated == (request->ttl_ms != 0));
    assert(request->wait_ms >= 0 && request->wait_ms <= 600000);
    assert(request->lock_delay_ms >= 0 && request->lock_delay_ms <= 600000);
    assert((request->mode == TOKEN_PERMITS) == (request->permits != 0));
    assert(request->permits == 0 || (request->permits >= 2 && request->permits <= 1000000));
    assert(request->lease_id_len == 0 ||
           name_is_lease_id((struct bytes){request->lease_id, request->lease_id_len}));
    assert(request->holder_len == 0 || name_is_holder((struct bytes){request->holder, request->holder_len}));
    assert(request->session_len == 0 ||
           request_is_session_id((struct bytes){request->session, request->session_len}));
    assert(request->meta_len <= REQUEST_META_MAX);
}

static void check_names(const struct lease_names *names)
{
    assert(names->count >= 1 && names->count <= REQUEST_NAMES_MAX);
    for (unsigned i = 0; i < names->count; i++) {
        assert(name_is_lease(names->name[i]));
        for (unsigned j = 0; j < i; j++)
            assert(!bytes_equal(names->name[i], names->name[j]));
    }
}

static void check_packed(const struct lease_request *request, const struct lease_names *names)
{
    static struct json_out out;
    struct acquire_options acquire_options = {
        {BYTES("\"\\key"), "dddddddddddddddddddddddd"}, "0123456789012345678901", NULL};
    struct bytes packed = acquire_options_write(&acquire_options, request,
                                                BYTES("pawl:{00}:d:0123456789abcdef"), 7, names, &out);
    struct json *json = json_parse(packed, 3, NULL);
    enum json_found found;
    struct bytes key;

    assert(json != NULL);
    assert(json_get_text(json, "key", &key) == JSON_FOUND && bytes_are(key, "\"\\key"));
    assert(json_list_count(json, "all", &found) == (names != NULL ? names->count : 0));
    json_free(json);
}

static void try_one(struct bytes body)
{
    struct lease_request request = {0}, session = {0};
    int64_t renew_ms = 0;
    struct force_request force = {0};
    struct request_fault fault;

    lease_request_read(body, &request, &fault);
    if (fault.problem == PROBLEM_NONE) {
        check_ask(&request);
        check_packed(&request, NULL);
    } else {
        check_wrong(&fault);
    }
    session_request_read(body, &session, &fault);
    if (fault.problem == PROBLEM_NONE)
        check_ask(&session);
    renew_request_read(body, &renew_ms, &fault);
    if (fault.problem == PROBLEM_NONE)
        assert(renew_ms == 0 || renew_ms >= 100);
    force_request_read(body, &force, &fault);
    if (fault.problem == PROBLEM_NONE) {
        assert(force.expect_token >= 0 && force.expect_token <= TOKEN_NUMBER_MAX);
        assert(force.reason_len == 0 || name_is_reason((struct bytes){force.reason, force.reason_len}));
    }
}

static void try_all(struct bytes body)
{
    static struct lease_names names;
    struct lease_request request = {0};
    struct request_fault fault;

    names.count = 0;
    lease_request_several_read(body, &request, &names, &fault);
    if (fault.problem != PROBLEM_NONE) {
        check_wrong(&fault);
        return;
    }
    check_ask(&request);
    check_names(&names);
    check_packed(&request, &names);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct bytes body = {(const char *)data, size < REQUEST_BODY_MAX ? size : REQUEST_BODY_MAX};

    try_one(body);
    try_all(body);
    return 0;
}
