/* test_http_peers.c - which addresses count as one, whose proxies are trusted, and what another thread may do
 * meanwhile. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <pthread.h>

#include "shared/http/http_internal.h"
#include "tests/unit/check.h"

static struct in6_addr address(const char *text)
{
    struct in6_addr found;

    CHECK_INT(inet_pton(AF_INET6, text, &found), 1);
    return found;
}

/* What another thread does as soon as the lock is free: every peer that is counted here leaves. Ours is found
 * before the library's. */
enum { PEERS = 65536 }; /* 16 in a bucket: one is in front of whichever comes next */
static struct {
    struct http_peers *peers;
    struct http_peer *counted[PEERS];
    bool is_next;
} other_thread;

int pthread_mutex_unlock(pthread_mutex_t *lock)
{
    int (*unlock)(pthread_mutex_t *);
    void *found = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    int status;

    memcpy(&unlock, &found, sizeof(unlock));
    status = unlock(lock);
    if (other_thread.is_next) {
        other_thread.is_next = false;
        for (unsigned i = 0; i < PEERS; i++)
            http_peer_leave(other_thread.peers, other_thread.counted[i]);
    }
    return status;
}

TEST(those_in_front_may_leave_as_soon_as_one_is_counted)
{
    const char *why = NULL;
    struct in6_addr each = address("::ffff:10.0.0.0"), one = address("::ffff:11.0.0.0");
    struct http_peers *peers = http_peers_new(2, NULL, &why);
    struct http_peer *first, *second;

    other_thread.peers = peers;
    for (unsigned i = 0; i < PEERS; i++) {
        each.s6_addr[14] = (uint8_t)(i >> 8);
        each.s6_addr[15] = (uint8_t)i;
        other_thread.counted[i] = http_peer_enter(peers, &each);
    }
    other_thread.is_next = true;
    first = http_peer_enter(peers, &one);
    CHECK(!other_thread.is_next);
    second = http_peer_enter(peers, &one);
    CHECK(first == second);
    http_peer_leave(peers, second);
    http_peer_leave(peers, second);
    http_peers_free(peers);
}

TEST(an_ipv6_network_of_64_bits_counts_as_one)
{
    const char *why = NULL;
    struct http_peers *peers = http_peers_new(2, NULL, &why);
    struct in6_addr one = address("2001:db8::1"), same = address("2001:db8::ffff:0:0:1"),
                    other = address("2001:db8:0:1::1"), v4 = address("::ffff:10.0.0.1"),
                    v4_other = address("::ffff:10.0.0.2");
    struct http_peer *first = http_peer_enter(peers, &one), *second = http_peer_enter(peers, &same);

    CHECK(first == second);
    CHECK(http_peers_full(peers, &one) && http_peers_full(peers, &same));
    CHECK(!http_peers_full(peers, &other));
    http_peer_leave(peers, first);
    CHECK(!http_peers_full(peers, &same));
    http_peer_leave(peers, second);
    first = http_peer_enter(peers, &v4);
    second = http_peer_enter(peers, &v4);
    CHECK(http_peers_full(peers, &v4) && !http_peers_full(peers, &v4_other));
    http_peer_leave(peers, first);
    http_peer_leave(peers, second);
    http_peers_free(peers);
}

/* shared/service/limits.c compares this half, beside the place that the other one gives. */
TEST(the_low_half_of_the_hash_is_another_for_each_address)
{
    const char *why = NULL;
    struct http_peers *peers = http_peers_new(2, NULL, &why);
    struct in6_addr any[2] = {address("::ffff:10.0.0.1"), address("2001:db8::")};

    for (unsigned i = 0; i < 2; i++) {
        struct in6_addr first = any[i];
        uint32_t hash = (uint32_t)http_peers_hash(peers, &first);

        for (uint8_t k = 1; k < 100; k++) {
            struct in6_addr other = any[i];

            other.s6_addr[i == 0 ? 14 : 5] = k;
            CHECK((uint32_t)http_peers_hash(peers, &other) != hash);
        }
    }
    http_peers_free(peers);
}

TEST(a_network_has_its_addresses_and_no_other)
{
    static const struct {
        const char *networks, *address;
        bool has;
    } cases[] = {
        {"10.0.0.0/8", "::ffff:10.255.1.2", true},
        {"10.0.0.0/8", "::ffff:11.0.0.0", false},
        {"10.0.0.0/8", "a00::", false},
        {"192.168.1.128/25", "::ffff:192.168.1.200", true},
        {"192.168.1.128/25", "::ffff:192.168.1.127", false},
        {"1.2.3.4", "::ffff:1.2.3.4", true},
        {"1.2.3.4", "::ffff:1.2.3.5", false},
        {"2001:db8::/32", "2001:db8:ffff::1", true},
        {"2001:db8::/32", "2001:db9::", false},
        {"::1,1.1.1.1", "::ffff:1.1.1.1", true},
        {"::1,1.1.1.1", "::1", true},
        {"0.0.0.0/0", "::1", false},
        {"0.0.0.0/0", "::ffff:9.9.9.9", true},
        {"::/0", "::ffff:9.9.9.9", true},
        {"fe80::/127", "fe80::1", true},
        {"fe80::/127", "fe80::2", false},
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *why = NULL;
        struct http_peers *peers = http_peers_new(1, cases[i].networks, &why);
        struct in6_addr one = address(cases[i].address);

        CHECK(why == NULL && http_peers_trust(peers, &one) == cases[i].has);
        http_peers_free(peers);
    }
}

CHECK_MAIN
