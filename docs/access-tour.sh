#!/bin/sh
# access-tour.sh - access control, played: two teams and an operator, who is refused where and with which words, nginx and
# HAProxy in between, and an access token and a certificate that change under load. Needs a build, or Pawl installed, and
# redis-server, openssl, curl; nginx and haproxy are left out if they are missing. Everything is in a directory of its own, which
# goes at the end. Each answer is checked: the first that is another one ends the tour with 1.
set -eu
PATH=$(cd "${PAWL_BUILD:-$(dirname "$0")/../build}" 2>/dev/null && pwd || echo /usr/bin):$PATH:/usr/sbin
for name in $(env | sed -n 's/^\(PAWL_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
dir=$(mktemp -d) pids= loads=
trap 'rm -f load; [ -z "$loads" ] || wait $loads || :; kill $pids 2>/dev/null || :; wait; cd /; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
cd "$dir"
export no_proxy='*'

tell() { printf '\n== %s\n' "$@"; }
wrong() { printf "\nWRONG: %s\n" "$1"; [ ! -s lease.log ] || tail -n 3 ./*.log; exit 1; }
wait_for() { # COMMAND: until it is true
    n=0
    until eval "$1" >/dev/null 2>&1; do n=$((n + 1)); [ $n -lt 600 ] || wrong "in 30 s not: $1"; sleep 0.05; done
}
try() { # EXIT-STATUS WORDS COMMAND: its output must have the words
    printf '\n$ %s\n' "$3"
    status=0
    eval "$3" </dev/null >said 2>&1 || status=$?
    sed 's/^/  /' said
    [ $status = "$1" ] && { [ -z "$2" ] || grep -qe "$2" said; } || wrong "exit status $status, and it should be $1, with: $2"
}
start() { # LOG COMMAND...
    log=$1 && shift
    : >"$log"
    "$@" >>"$log" 2>&1 &
    pids="$! $pids"
}
sign() { # NAME LINE-OF-EXTENSIONS: NAME.pem and NAME.key
    printf '%s\n' "$2" >ext
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout new.key -out csr -subj "/CN=$1" 2>/dev/null
    openssl x509 -req -in csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out new.pem 2>/dev/null
    mv new.key "$1.key" && mv new.pem "$1.pem"
}
sign_server() { sign server subjectAltName=DNS:localhost,IP:127.0.0.1; }
hash_of() { pawl access hash <"$1"; }
rules() { # HASHES-OF-SHOP: the access file, in one step
    cat >new.json <<END
{"identities": {
   "shop": {"access_tokens": [$1]},
   "crm":  {"access_tokens": [$(hash_of crm.token)]},
   "ops":  {"certs": ["dns:ops.example.org"]}},
 "groups": {"teams": ["shop", "crm"]},
 "rules": [
   {"who": ["teams"], "may": ["acquire", "look", "read", "write-own"], "on": ["{me}:*", "shared:*"]},
   {"who": ["ops"],   "may": ["look", "force-release"], "on": ["shop:*", "crm:*", "shared:*"]},
   {"who": ["ops"],   "may": ["observe"]}]}
END
    chmod go-w new.json && mv new.json access.json
}
hang_up() { try 0 '' 'kill -HUP $(cat lease.pid gateway.pid)'; }
judged() { # until both services judge by access.json
    for url in "$PAWL_LEASE_URL" "$PAWL_GATEWAY_URL"; do
        wait_for "curl -sS --cacert ca.pem -H \"Authorization: Bearer \$(cat crm.token)\" $url/v1/access | \
            grep -q \"\$(sha256sum <access.json | cut -c1-64)\""
    done
}

# -- what is there: Redis, an authority, keys, both services over TLS
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca 2>/dev/null
sign_server
sign ops subjectAltName=DNS:ops.example.org
pawl keygen --out keys >/dev/null
start redis.log redis-server --port 0 --unixsocket "$dir/redis" --appendonly yes --appendfsync always --aof-load-truncated no --save '' \
    --maxmemory-policy noeviction --dir "$dir"
wait_for '[ -S redis ]'
mkdir state.lease state.gateway
STATE_DIRECTORY=$dir/state.lease pawl-lease --redis "unix://$dir/redis" --init-store >init.log 2>&1
for name in shop crm; do pawl access new $name --out $name.token >/dev/null; done
rules "$(hash_of shop.token)"
for name in lease gateway; do
    start $name.log env STATE_DIRECTORY="$dir/state.$name" pawl-$name --redis "unix://$dir/redis" --keys keys \
        --listen 127.0.0.1:0 --access access.json --tls-cert server.pem --tls-key server.key --tls-client-ca ca.pem
    echo $! >$name.pid
    wait_for "grep '^listening on https' $name.log"
done
url_of() { sed -n 's/^listening on //p' "$1.log"; }
export PAWL_LEASE_URL="$(url_of lease)" PAWL_GATEWAY_URL="$(url_of gateway)" PAWL_CACERT="$dir/ca.pem"
for url in "$PAWL_LEASE_URL" "$PAWL_GATEWAY_URL"; do
    wait_for "curl -fsS --cacert ca.pem $url/readyz"
done

tell "One file: two teams with access tokens, an operator with a certificate"
try 0 '"rules"' 'cat access.json'
try 0 'good: sha256' 'pawl access check access.json'
try 0 'lease service: shop, by access-token' 'PAWL_ACCESS_TOKEN_FILE=shop.token pawl access whoami'

tell "Each team has its own names, whoever holds them"
try 0 'shop:cart-7' 'PAWL_ACCESS_TOKEN_FILE=shop.token pawl acquire shop:cart-7 --ttl 10m --holder till-3'
try 77 'forbidden' 'PAWL_ACCESS_TOKEN_FILE=crm.token pawl acquire shop:cart-7'
try 77 'forbidden' 'PAWL_ACCESS_TOKEN_FILE=crm.token pawl get shop:no-such-cart'

tell "Who shows nothing, or something wrong, is nobody: 401, and why"
try 0 '"why":"none"' 'curl -sS --cacert ca.pem $PAWL_LEASE_URL/v1/leases/shop:cart-7; echo'
try 77 'unauthenticated' 'PAWL_ACCESS_TOKEN=$(pawl access new shop | head -1) pawl get shop:cart-7'

tell "A fencing token counts only in the hands of who acquired it"
try 0 '' 'eval "$(PAWL_ACCESS_TOKEN_FILE=shop.token pawl acquire shared:report --ttl 10m -o env)"'
try 0 '' 'echo by shop | PAWL_ACCESS_TOKEN_FILE=shop.token pawl put shared:report'
try 77 'not-yours' 'echo by crm | PAWL_ACCESS_TOKEN_FILE=crm.token pawl put shared:report'
try 77 'not-yours' 'PAWL_ACCESS_TOKEN_FILE=crm.token pawl release shared:report'
try 0 'by shop' 'PAWL_ACCESS_TOKEN_FILE=crm.token pawl cat shared:report'

tell "The operator may look, and end what is stuck, and no more"
try 0 'till-3' 'PAWL_CERT=ops.pem PAWL_CERT_KEY=ops.key pawl get shop:cart-7'
try 77 'forbidden' 'PAWL_CERT=ops.pem PAWL_CERT_KEY=ops.key pawl acquire shop:cart-8'
try 77 'forbidden' 'PAWL_ACCESS_TOKEN_FILE=shop.token pawl force-release shop:cart-7 --yes'
try 0 '' 'PAWL_CERT=ops.pem PAWL_CERT_KEY=ops.key pawl force-release shop:cart-7 --yes --reason "till 3 is broken"'
try 0 'pawl_access' 'curl -sS --cacert ca.pem --cert ops.pem --key ops.key $PAWL_LEASE_URL/metrics | grep ^pawl_access'
try 0 '"identity":"crm"' 'grep denied lease.log | head -2'

ways=direct
nginx_conf() {
    cat <<END
daemon off; master_process off; pid $dir/nginx.pid; events {}
http {
    access_log off;
    client_body_temp_path $dir/1; proxy_temp_path $dir/2; fastcgi_temp_path $dir/3; uwsgi_temp_path $dir/4; scgi_temp_path $dir/5;
    upstream lease { server ${PAWL_LEASE_URL#https://}; keepalive 8; }
    upstream gateway { server ${PAWL_GATEWAY_URL#https://}; keepalive 8; }
    server {
        listen unix:$dir/nginx;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host \$http_host;
        proxy_next_upstream off;
        proxy_ssl_trusted_certificate $dir/ca.pem;
        proxy_ssl_verify on;
        proxy_ssl_name localhost;
        location /v1/resources/ { proxy_pass https://gateway; }
        location / { proxy_pass https://lease; }
    }
}
END
}
haproxy_conf() {
    cat <<END
defaults
    mode http
    timeout connect 1s
    timeout client 630s
    timeout server 630s
    retries 0
frontend pawl
    bind unix@$dir/haproxy
    use_backend gateway if { path_beg /v1/resources/ }
    default_backend lease
backend lease
    server lease ${PAWL_LEASE_URL#https://} ssl verify required ca-file $dir/ca.pem verifyhost localhost
backend gateway
    server gateway ${PAWL_GATEWAY_URL#https://} ssl verify required ca-file $dir/ca.pem verifyhost localhost
END
}
for proxy in nginx haproxy; do
    command -v $proxy >/dev/null || { tell "$proxy is not installed: left out"; continue; }
    tell "The same through $proxy, which speaks TLS with the services and passes Authorization on as it is"
    ${proxy}_conf >$proxy.conf
    case $proxy in
    nginx) start nginx.log nginx -p "$dir" -c "$dir/nginx.conf" -e stderr ;;
    haproxy) start haproxy.log haproxy -db -f haproxy.conf ;;
    esac
    wait_for "curl -fsS --unix-socket $proxy http://localhost/livez"
    at="PAWL_LEASE_URL=unix:\$PWD/$proxy PAWL_GATEWAY_URL=unix:\$PWD/$proxy"
    try 0 'whole' "$at PAWL_ACCESS_TOKEN_FILE=shop.token pawl run shop:$proxy sh -c 'echo whole | \
    pawl put shop:$proxy && pawl cat shop:$proxy'"
    try 77 'forbidden' "$at PAWL_ACCESS_TOKEN_FILE=crm.token pawl acquire shop:$proxy"
    try 0 '"why":"none"' "curl -sS --unix-socket $proxy http://localhost/v1/leases/shop:$proxy; echo"
    ways="$ways $proxy"
done

# -- load: requests that never stop, by each way, and a hold that is renewed and written under
load() { # WAY
    case $1 in
    direct) set -- --cacert ca.pem "$PAWL_LEASE_URL" ;;
    *) set -- --unix-socket "$1" http://localhost ;;
    esac
    while [ -e load ]; do
        curl -sS -o /dev/null -w '%{http_code}\n' -H "Authorization: Bearer $(cat shop.token)" "$1" "$2" \
            "$3/v1/leases/shop:[1-20]" 2>&1 || :
    done
}
write_on() {
    PAWL_ACCESS_TOKEN_FILE=shop.token pawl run shop:nightly --ttl 2s sh -c \
        'while [ -e load ]; do date | pawl put shop:nightly >out && echo 200; done' 2>&1 || echo "pawl run ended with $?"
}
goes_on() { # each way has begun and ended further requests, and none failed
    for way in $ways writes; do eval "n_$way=\$(wc -l <load.$way)"; done
    for way in $ways writes; do
        wait_for "[ \$(wc -l <load.$way) -ge \$((n_$way + $([ $way = writes ] && echo 3 || echo 60))) ] || grep -hv '^200\$' load.*"
    done
    ! grep -hv '^200$' load.* || wrong "a request failed"
}
tell "An access token changes under load: requests by each way ($ways), and a hold that is renewed and written under"
touch load
for way in $ways; do start load.$way load $way; loads="$! $loads"; done
start load.writes write_on
loads="$! $loads"
goes_on
try 0 'sha256' 'pawl access new shop --out shop.new'
old=$(hash_of shop.token)
cp shop.token shop.old
try 0 '' 'rules "$old, $(hash_of shop.new)"   # both of them count now'
hang_up
judged
try 0 '' 'mv shop.new shop.token               # the clients read it again'
goes_on
try 0 '' 'rules "$(hash_of shop.token)"        # the old one goes'
hang_up
judged
try 77 'unauthenticated' 'PAWL_ACCESS_TOKEN_FILE=shop.old pawl get shop:cart-7'
goes_on

tell "And so does the certificate of both services"
serials() {
    for url in "$PAWL_LEASE_URL" "$PAWL_GATEWAY_URL"; do
        openssl s_client -connect "${url#https://}" </dev/null 2>/dev/null | openssl x509 -noout -serial
    done
}
try 0 'serial' 'serials'
sign_server
hang_up
wait_for "[ \"\$(serials | uniq)\" = \"$(openssl x509 -noout -serial -in server.pem)\" ]"
try 0 "$(openssl x509 -noout -serial -in server.pem)" 'serials'
goes_on
rm load
wait $loads
try 0 '^ *[0-9]* 200$' 'cat load.* | sort | uniq -c     # all that was asked, by how it ended'
[ "$(wc -l <said)" = 1 ] || wrong "a request failed"

tell "That was all of it, and every answer was as it should be"
