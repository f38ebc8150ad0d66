# varnish.vcl - Varnish in front of both services of Pawl: who may call, nothing cached, no request sent twice.
#
#   varnishd -a 127.0.0.1:6081,PROXY -f /etc/varnish/pawl.vcl
#
# Varnish speaks no TLS: put hitch, HAProxy or nginx before it, with the PROXY protocol, so that the address is the client's.
# Varnish notices that a client has gone when it has something to send: who hangs up in the line stays in it, and the lease
# that it is then given is nobody's until its ttl has passed. Let clients wait in short slices (pawl and libpawl do).
#
# Change what is marked "yours". Varnish 7.1 or later. Pawl is told the names that clients use and where the proxy is:
# --allow-host pawl.example --trusted-proxy 127.0.0.1. Why each line: docs/deploy.md. The tests run this very file.
vcl 4.1;

import directors;
import std;

probe ready {
    .request = "GET /readyz HTTP/1.1" "Host: localhost" "Connection: close";
    .interval = 1s;
    .threshold = 1;
    .window = 2;
    .initial = 1;
}

# yours. A wait may last 10 minutes (wait_ms). Events are never silent for longer than 15 s.
backend lease_1 { .host = "127.0.0.1"; .port = "8700"; .probe = ready; .connect_timeout = 1s; .first_byte_timeout = 630s; .between_bytes_timeout = 60s; }
backend lease_2 { .host = "127.0.0.1"; .port = "8702"; .probe = ready; .connect_timeout = 1s; .first_byte_timeout = 630s; .between_bytes_timeout = 60s; }
backend gateway_1 { .host = "127.0.0.1"; .port = "8701"; .probe = ready; .connect_timeout = 1s; .first_byte_timeout = 630s; .between_bytes_timeout = 60s; }
backend gateway_2 { .host = "127.0.0.1"; .port = "8703"; .probe = ready; .connect_timeout = 1s; .first_byte_timeout = 630s; .between_bytes_timeout = 60s; }

sub vcl_init {
    new lease = directors.round_robin();
    lease.add_backend(lease_1);
    lease.add_backend(lease_2);
    new gateway = directors.round_robin();
    gateway.add_backend(gateway_1);
    gateway.add_backend(gateway_2);
}

sub vcl_recv {
    # An answer may take 10 minutes in all, where nothing else is said. A stream of events has no end.
    set sess.send_timeout = 1d;
    # A target with scheme and host becomes its path; anything else that is no path goes nowhere.
    if (req.url ~ "(?i)^https?://") {
        set req.url = regsub(req.url, "(?i)^https?://[^/?#]*", "");
    }
    if (req.url !~ "^/" || req.method == "CONNECT" || req.http.Upgrade) {
        return (synth(400));
    }
    # yours: the secrets of those who may call (openssl rand -hex 32). Let only root read this file.
    if (req.http.Authorization != "Bearer OPERATOR-SECRET") {
        if (req.http.Authorization != "Bearer CLIENT-SECRET") {
            return (synth(401));
        }
        # What is an operator's. The path is looked at as it was sent, which is also how it is passed on.
        if (req.url ~ "^/v1/leases/[^/?]*/force-release|^/v1/sessions/[^/?]*/end|^/v1/(intents|gateways|routes)|^/(metrics|readyz)") {
            return (synth(403));
        }
    }
    # The secret is ours; an application behind the gateway must not see it.
    unset req.http.Authorization;
    set req.http.X-Forwarded-For = client.ip;
    # A body without a length is taken whole: of one that its client breaks off Varnish would say that it is whole.
    if (!req.http.Content-Length && !std.cache_req_body(16MB)) {
        return (synth(400));
    }
    if (req.url ~ "^/v1/(leases|sessions|events)(/|\?|$)") {
        set req.backend_hint = lease.backend();
    } else {
        set req.backend_hint = gateway.backend();
    }
    return (pass);
}

sub vcl_backend_fetch {
    # On a connection that it kept, Varnish would send some requests again: a write is sent once.
    set bereq.http.Connection = "close";
    return (fetch);
}

sub vcl_backend_response {
    # What is packed, unpacked or kept here is not what Pawl said. Varnish unpacks for who does not say that it takes gzip.
    set beresp.do_gzip = false;
    unset beresp.http.X-Pawl-Encoding;
    if (beresp.http.Content-Encoding) {
        set beresp.http.X-Pawl-Encoding = beresp.http.Content-Encoding;
        unset beresp.http.Content-Encoding;
    }
    return (deliver);
}

sub vcl_deliver {
    if (resp.http.X-Pawl-Encoding) {
        set resp.http.Content-Encoding = resp.http.X-Pawl-Encoding;
    }
    unset resp.http.X-Pawl-Encoding;
    # Pawl has answered these; Varnish would make another answer of that, also for a write.
    unset req.http.If-None-Match;
    unset req.http.If-Modified-Since;
    unset req.http.Range;
}

sub vcl_backend_error {
    # Varnish's 503 would stand for what was sent, too, and of Pawl it means that nothing was done.
    set beresp.status = 502;
}

sub vcl_synth {
    if (resp.status == 401) {
        set resp.http.WWW-Authenticate = {"Bearer realm="pawl""};
    }
}
