#!/bin/sh
# pawl-lease.sh - a lease with a fencing token from a shell, with curl and jq: to use, or to copy from (docs/clients.md).
# Where `pawl` is installed, `pawl run` does more and does it better.
#
#   grant=$(pawl-lease.sh acquire orders:42 30000 10000 billing-7) || exit    # NAME [TTL_MS [WAIT_MS [HOLDER]]]
#   eval "$grant"      # PAWL_LEASE, PAWL_LEASE_ID, PAWL_TOKEN, PAWL_FENCING_TOKEN, LEASE_DEADLINE_MS
#   echo packed | pawl-lease.sh put orders:42       # KEY [FILE]; IDEMPOTENCY_KEY: then a lost answer is asked for again
#   new=$(pawl-lease.sh renew 30000) || why=$?      # [TTL_MS]
#   eval "$new"        # also after 74: a TTL_MS that is shorter may have brought the deadline nearer; and after 76: it is 0
#   pawl-lease.sh remaining                         # how many ms it is certainly held yet
#   pawl-lease.sh get orders:42                     # KEY; fenced
#   pawl-lease.sh delete orders:42                  # KEY
#   pawl-lease.sh release
#   pawl-lease.sh run orders:42 30000 10000 -- CMD  # holds it while CMD runs, renews it, stops CMD when it is lost or we are interrupted
#
# Exit status (run: the command's own, unless it is 75, 76 or 69):
#   0   granted, done         75  certainly not granted: another holds it, or the wait is over
#   1   certainly not done, and the same again will not help        69  certainly not done; it may help later
#   76  lost: the hold is over, stop what it protected              74  unknown: it may have happened, or may yet
#   64  a mistake of the caller's
#
# LEASE_DEADLINE_MS counts on the clock of /proc/uptime, which goes on while the machine sleeps: when the answered request was
# sent, plus what was waited, plus what is left. MODE=shared, PROPOSED_LEASE_ID, TIMEOUT_MS (5000) and ATTEMPTS (3) are read
# from the environment. The lease_id is a secret: it is never on a command line.
#
# An address may also be unix:/path. Who asks: PAWL_ACCESS_TOKEN, or PAWL_ACCESS_TOKEN_FILE, which is read for each request; with
# https PAWL_CACERT, PAWL_CERT, PAWL_CERT_KEY. An access token goes over http:// to other machines only with
# PAWL_ALLOW_PLAINTEXT=true, and run does not hand it to CMD.
set -u
umask 077
locale=${LC_ALL-}
export LC_ALL=C # of ranges like A-Z

lease_url=${PAWL_LEASE_URL:-http://127.0.0.1:8700}
gateway_url=${PAWL_GATEWAY_URL:-http://127.0.0.1:8701}
lease_url=${lease_url%"${lease_url##*[!/]}"} # without slashes at its end
gateway_url=${gateway_url%"${gateway_url##*[!/]}"}
timeout_ms=${TIMEOUT_MS:-5000}
slice=20000 # of one request's wait in line, before a proxy ends it; of the place's keeping; of sitting out a restart
attempts=${ATTEMPTS:-3}
third= # of the ttl, while run renews
OK=0 REFUSED=1 USAGE=64 NOT_DONE=69 UNKNOWN=74 HELD=75 LOST=76

place=$(mktemp -d) || exit $NOT_DONE
trap 'rm -rf "$place"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

tell()
{
    echo "pawl-lease: $*" >&2
}

usage()
{
    tell "$*"
    exit $USAGE
}

now_ms()
{
    read -r up _ < /proc/uptime
    echo "${up%.*}${up#*.}0"
}

# In milliseconds, as curl wants it: in seconds.
seconds()
{
    printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000))
}

random_id()
{
    head -c 24 /dev/urandom | base64 | tr '+/' '-_'
}

# 0 to $1 - 1
random_below()
{
    echo $(($(od -An -N2 -tu2 /dev/urandom) % $1))
}

is_number()
{
    case $1 in '' | *[!0-9]* | ????????????????*) return 1 ;; esac
}

check_name()
{
    case $1 in
    [!A-Za-z0-9]* | *[!A-Za-z0-9._:-]* | '') usage "not the name of a lease: $1" ;;
    esac
    [ "${#1}" -le 128 ] || usage "not the name of a lease: $1"
}

# What a header may be: no line of its own.
check_line()
{
    [ "$(printf '%s' "$1" | tr -d '[:print:]' | wc -c)" -eq 0 ] || usage "$2 has a character that no header may have"
}

# Whether nobody else hears what is sent to this address.
is_private()
{
    case $1 in unix:/* | https://*) return 0 ;; esac
    at=${1#http://}
    at=${at%%[/?#]*}
    case $at in
    *\\*) return 1 ;;
    localhost | localhost:* | '[::1]' | '[::1]':*) ;;
    *[!0-9.:]*) return 1 ;;
    127.*) ;;
    *) return 1 ;;
    esac
}

# The header with the access token that there is now, in $place/access; it is on no command line and in no message.
access()
{
    : > "$place/access"
    [ -n "${PAWL_ACCESS_TOKEN_FILE:-}${PAWL_ACCESS_TOKEN:-}" ] || return 0
    secret=${PAWL_ACCESS_TOKEN:-}
    [ -z "${PAWL_ACCESS_TOKEN_FILE:-}" ] || secret=$(cat -- "$PAWL_ACCESS_TOKEN_FILE" 2> "$place/error") || return 1
    secret=${secret%"$(printf '\r')"}
    case $secret in '' | *[!!-~]*) echo 'the access token is none' > "$place/error" && return 1 ;; esac
    printf 'Authorization: Bearer %s\n' "$secret" > "$place/access"
}

# once METHOD URL LIMIT_MS: one request, with $place/headers and, if it is there, $place/body; sent once. Leaves the outcome in
# $outcome and the answer in $place/answer; $sent and $received are when.
once()
{
    method=$1 url=$2 limit=$3 code='' retryable=false problem='' kept=false connected=connect
    rm -f "$place/answer" "$place/told"
    base=$gateway_url
    case $url in "$lease_url"/v1/leases/*) base=$lease_url ;; esac
    case $base in https:*) connected=appconnect ;; esac # only then something leaves
    if ! access; then
        outcome=$NOT_DONE retryable=true problem="not-sent: $(cat "$place/error"); nothing was sent"
        sent=$(now_ms)
        received=$sent
        return
    fi
    set -- -q -sS --noproxy '*' --proto =http,https --connect-timeout "$(seconds "$limit")" \
        --max-time "$(seconds "$limit")" -X "$method" -H "@$place/headers" -H "@$place/access" -H 'Expect:' -D "$place/told" \
        -o "$place/answer" -w "%{http_code} %{time_$connected}"
    [ ! -e "$place/body" ] || set -- "$@" --data-binary "@$place/body"
    [ -z "${PAWL_CACERT:-}" ] || set -- "$@" --cacert "$PAWL_CACERT"
    [ -z "${PAWL_CERT:-}" ] || set -- "$@" --cert "$PAWL_CERT" --key "${PAWL_CERT_KEY:-}" --pass '' # else it asks for that of a locked key
    to=$url
    case $base in unix:/*) to=http://localhost${url#"$base"} && set -- "$@" --unix-socket "${base#unix:}" ;; esac
    sent=$(now_ms)
    said=$(
        ulimit -f $((64 * 2048)) # of 512 bytes: 64 MiB, however much comes
        curl "$@" "$to" 2> "$place/error"
    )
    left_with=$?
    received=$(now_ms)
    status=${said%% *}
    case $left_with:${said#* } in
    0:*) judge ;;
    [234]:* | 1:0.000000) usage "$(cat "$place/error")" ;; # 1: a scheme that it does not know; else an answer that is not HTTP
    *:0.000000 | 12[67]:*) outcome=$NOT_DONE retryable=true problem="not-sent: $(cat "$place/error"); nothing was sent" ;;
    *) outcome=$UNKNOWN problem="no-answer: $(cat "$place/error"); it may have happened" ;;
    esac
}

has_header()
{
    grep -iq "^$1" "$place/told"
}

# Whether a 2xx has all that Pawl always sends with it. (A grant is looked at by granted.)
is_done()
{
    case $method:$status:$url in
    POST:20[01]:* | PUT:200:"$lease_url"/v1/leases/*) ;;
    DELETE:204:"$lease_url"/v1/leases/*) ;;
    DELETE:200:"$lease_url"/v1/leases/*) jq -e '(.holds | numbers) >= 1' "$place/answer" > /dev/null 2>&1 ;;
    PUT:201:* | PUT:204:*) has_header 'fencing-status: *pawl;' && has_header 'etag: *"' ;;
    DELETE:204:*) has_header 'fencing-status: *pawl;' ;;
    GET:200:*) has_header 'fencing-mark:' && has_header 'etag: *"' ;;
    *) return 1 ;;
    esac
}

# The outcome of a whole answer.
judge()
{
    # curl takes headers that are cut off for whole ones.
    if [ "$(tail -c 4 "$place/told" | od -An -tx1 | tr -d ' \n')" != 0d0a0d0a ]; then
        outcome=$UNKNOWN problem='no-answer: the answer is cut off; it may have happened'
        return
    fi
    # Nor can it tell a whole body from a part, when the length was not told.
    if [ "$status" -ne 204 ] && ! has_header 'content-length:' && ! has_header 'transfer-encoding:'; then
        outcome=$UNKNOWN problem='no-answer: an answer without a length; it may have happened'
        return
    fi
    case $status in
    2??)
        if is_done; then
            outcome=$OK
        else
            outcome=$UNKNOWN problem="bad-answer: status $status, not as Pawl answers; it may have happened"
        fi
        return
        ;;
    esac
    # Only as Pawl tells it: somebody between may have answered, who does not know what became of the request.
    # What is evaluated has been made a string, a number or a boolean: of an array @sh makes several words, and they would run.
    if grep -iq '^content-type: *application/problem+json' "$place/told"; then
        eval "$(status=$status jq -rs 'select(length == 1)[]
            | select(.type == "/problems/\(.code)" and .status == (env.status | tonumber))
            | (.code | strings) as $code | @sh "code=\($code)", @sh "retryable=\(.retryable == true)",
            @sh "kept=\([.place_kept_ms | numbers] | any(. > 0))", @sh "problem=\("\($code): \(.detail // $code)"
            + if .holder then " (holder: \(.holder))" else "" end
            + if .ended then " (ended: \(.ended))" else "" end)"' "$place/answer" 2> /dev/null)"
    fi
    case $code:$status in
    lease-held:* | wait-timeout:*) outcome=$HELD ;;
    lease-lost:* | hold-over:* | session-lost:* | stale-token:* | lease-expired:*) outcome=$LOST ;;
    :*) outcome=$UNKNOWN problem="bad-answer: status $status, not as Pawl answers; it may have happened" ;;
    *:501 | *:503 | *:4?? | upstream-unavailable:*) outcome=$NOT_DONE ;;
    *) outcome=$UNKNOWN ;; # 504, 500, and what we do not know
    esac
}

# settle TIMES CALL: until its end is known.
settle()
{
    times=$1 call=$2 number=0
    while [ "$number" -lt "$times" ]; do
        [ "$number" -eq 0 ] || pause "$number"
        number=$((number + 1))
        $call
        case $outcome in
        "$UNKNOWN") doubt=$problem ;;
        "$NOT_DONE") [ "$retryable" = true ] || break ;;
        *) break ;;
        esac
    done
    in_doubt
}

pause()
{
    sleep "$(seconds $((100 * $1 - $(random_below 50))))"
}

# After an attempt that may have been done, a refusal is no proof that nothing was: the earlier request may be done after the later
# one was refused. A loss is told as one when $loss_is_certain.
in_doubt()
{
    case $outcome in
    "$OK") return ;;
    "$LOST") [ "$loss_is_certain" = no ] || return ;;
    esac
    if [ -n "$doubt" ] && [ "$outcome" -ne "$UNKNOWN" ]; then
        outcome=$UNKNOWN problem="$doubt; asked again: $problem"
    fi
}

# Ends the program, unless it is done.
conclude()
{
    [ "$outcome" -ne "$OK" ] || return 0
    tell "$problem"
    [ "$outcome" -ne "$NOT_DONE" ] || [ "$retryable" = true ] || exit $REFUSED
    exit "$outcome"
}

# Whether the answer is a grant of this lease; sets the deadline, when it is.
granted()
{
    [ "$outcome" -eq "$OK" ] || return 0
    # Sets token, fencing, waited and expires.
    grant=$(name=$name id=$id jq -rs 'select(length == 1)[] | select(.lease == env.name and .lease_id == env.id and (.fencing_token | type) == "string" and
            (.fencing_token | test("\\A[!-~]{1,1024}\\z")) and
            ([.token, .ttl_ms, .expires_in_ms, .waited_ms] | all(type == "number" and . >= 0 and . == floor)) and
            .token >= 1 and .ttl_ms >= 1 and .token <= 999999999999999 and .expires_in_ms <= 86400000 and .waited_ms <= 1000000000000)
        | @sh "token=\(.token | floor) fencing=\(.fencing_token) waited=\(.waited_ms | floor) expires=\(.expires_in_ms | floor)"' \
        "$place/answer" 2> /dev/null)
    if [ -z "$grant" ]; then
        outcome=$UNKNOWN problem='bad-answer: the answer is not a grant of this lease; it may have happened'
        return 0
    fi
    token='' waited=0 expires=0
    eval "$grant"
    [ "$waited" -le $((received - sent)) ] || waited=$((received - sent))
    deadline=$((sent + waited + expires - 11)) # the store's clock is cut to milliseconds, now_ms to ticks of 10
}

# wait_once MS KEEP_MS: one request; 0: as long as the wait in line, and as the place in it is kept.
wait_once()
{
    in_line=$1
    echo 'Content-Type: application/json' > "$place/headers"
    # Without a body it would be granted under a lease_id that nobody knows.
    if ! id=$id holder=$holder mode=${MODE:-exclusive} jq -nc --argjson ttl "$ttl" --argjson wait "$1" --argjson keep "$2" '
        {ttl_ms: $ttl, wait_ms: $wait, keep_place_ms: $keep, lease_id: env.id, mode: env.mode}
        + if env.holder == "" then {} else {holder: env.holder} end' > "$place/body"; then
        outcome=$NOT_DONE code='' retryable=true problem="not-sent: the request cannot be written by jq into $place; nothing was sent"
        return
    fi
    once POST "$lease_url/v1/leases/$name" $(($1 + timeout_ms))
    granted
}

# Waits in slices that no proxy ends, and keeps the place in line between them; while nobody of Pawl's answers, as long as the place
# is kept.
wait_in_line()
{
    tried=0 heard=$(now_ms)
    while :; do
        left=$((end - $(now_ms)))
        if [ "$wait" -eq 0 ]; then
            wait_once 0 0
        elif [ "$left" -le 0 ]; then
            wait_once 1 0
        elif [ "$left" -lt "$slice" ]; then
            wait_once "$left" "$slice"
        else
            wait_once "$slice" "$slice"
        fi
        case $outcome:$code in
        "$HELD":wait-timeout)
            [ "$left" -gt "$slice" ] || [ "$kept" = true ] || break
            tried=0 heard=$(now_ms)
            continue
            ;;
        "$UNKNOWN":*) doubt=$problem ;;
        "$NOT_DONE":superseded) [ -n "$doubt" ] || break ;; # else by our own request, late
        "$NOT_DONE":*) [ "$retryable" = true ] || break ;;
        *) break ;;
        esac
        if [ "$outcome:$code" != "$NOT_DONE:" ] && [ $((received - sent)) -ge 1000 ] && [ $((received - sent)) -le "$in_line" ]; then
            tried=0 heard=$received # we stood in line until now
        fi
        tried=$((tried + 1))
        if [ "$tried" -ge "$attempts" ]; then
            [ "$left" -gt 0 ] && [ $(($(now_ms) - heard)) -le "$slice" ] || break
        fi
        pause $((tried < 8 ? tried : 8))
    done
    in_doubt
}

release_once()
{
    rm -f "$place/body"
    once DELETE "$lease_url/v1/leases/$name" "$timeout_ms"
}

release_headers()
{
    { echo "Lease-Id: $id" && echo "Idempotency-Key: $(random_id)"; } > "$place/headers"
}

# The place in line as well, by a request that takes it and keeps it no more.
give_back()
{
    [ "$wait" -eq 0 ] || wait_once 1 0
    release_headers
    release_once # what it does not do, the ttl does
}

acquire()
{
    name=${1:-} ttl=${2:-30000} wait=${3:-0} holder=${4:-}
    check_name "$name"
    if ! is_number "$ttl" || [ "$ttl" -lt 100 ] || [ "$ttl" -gt 86400000 ]; then
        usage "TTL_MS must be 100 to 86400000, not $ttl"
    fi
    is_number "$wait" || usage "WAIT_MS is a number, not $wait"
    id=${PROPOSED_LEASE_ID:-$(random_id)}
    case $id in *[!A-Za-z0-9_-]*) usage 'PROPOSED_LEASE_ID: 22 to 64 of A-Z a-z 0-9 _ -' ;; esac
    if [ "${#id}" -lt 22 ] || [ "${#id}" -gt 64 ]; then
        usage 'PROPOSED_LEASE_ID: 22 to 64 of A-Z a-z 0-9 _ -'
    fi
    end=$(($(now_ms) + wait)) doubt='' loss_is_certain=yes deadline=0
    [ -n "${PROPOSED_LEASE_ID:-}" ] || trap 'give_back; rm -rf "$place"' EXIT # when we are interrupted
    wait_in_line
    trap 'rm -rf "$place"' EXIT
    if [ "$outcome" -eq "$OK" ] && [ "$deadline" -le "$(now_ms)" ]; then
        outcome=$LOST problem='deadline-passed: the grant came when it was over'
    fi
    if [ "$outcome" -eq "$UNKNOWN" ] && [ -z "${PROPOSED_LEASE_ID:-}" ]; then
        why=$problem
        give_back
        outcome=$UNKNOWN problem=$why
    fi
}

# What was acquired, from the environment; lost is lost, also when the service would still say otherwise.
held()
{
    name=${PAWL_LEASE:-} id=${PAWL_LEASE_ID:-} fencing=${PAWL_FENCING_TOKEN:-} deadline=${LEASE_DEADLINE_MS:-}
    check_name "$name"
    check_line "$id" PAWL_LEASE_ID
    check_line "$fencing" PAWL_FENCING_TOKEN
    [ -n "$fencing" ] || usage 'PAWL_FENCING_TOKEN is empty'
    is_number "$deadline" || usage 'LEASE_DEADLINE_MS is no number'
}

in_time()
{
    [ "$(now_ms)" -lt "$deadline" ] && return
    tell "deadline-passed: $name was not renewed in time: it may be another's now"
    exit $LOST
}

renew_once()
{
    begun=$(now_ms) limit=$((deadline - $(now_ms)))
    [ "$limit" -le "$timeout_ms" ] || limit=$timeout_ms
    [ "$limit" -le "${third:-$limit}" ] || limit=$third
    [ "$limit" -ge 10 ] || limit=10
    { echo "Lease-Id: $id" && echo "Fencing-Token: $fencing"; } > "$place/headers"
    rm -f "$place/body"
    if [ -n "$ttl_asked" ]; then
        echo 'Content-Type: application/json' >> "$place/headers"
        echo "{\"ttl_ms\":$ttl_asked}" > "$place/body"
    fi
    old=$deadline was=${fencing%%;*}
    once PUT "$lease_url/v1/leases/$name" "$limit"
    granted
    if [ "$outcome" -eq "$OK" ] && [ "$token" != "$was" ]; then
        outcome=$UNKNOWN deadline=$old problem='bad-answer: the answer is not about this hold; it may have happened'
    fi
    if [ "$(now_ms)" -ge "$old" ]; then
        outcome=$LOST deadline=$old problem="deadline-passed: $name was not renewed in time: it may be another's now"
    elif [ "$outcome" -eq "$UNKNOWN" ] && [ -n "$ttl_asked" ] && [ $((begun + ttl_asked)) -lt "$deadline" ]; then
        deadline=$((begun + ttl_asked)) # if it was done, the end has come nearer
    fi
}

renew()
{
    ttl_asked=${1:-} doubt='' loss_is_certain=yes
    [ -z "$ttl_asked" ] || is_number "$ttl_asked" || usage "TTL_MS is a number, not $ttl_asked"
    settle "$attempts" renew_once
}

release()
{
    doubt='' loss_is_certain=yes
    release_headers
    echo "Fencing-Token: $fencing" >> "$place/headers"
    settle "$attempts" release_once
}

resource_url()
{
    LC_ALL=C printf '%s' "$1" | grep -Eq '^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}(/|$)' || usage "not the key of a resource: $1"
    case /$1/ in *//* | */./* | */../*) usage "not the key of a resource: $1" ;; esac
    [ "$(printf '%s' "$1" | jq -Rrs .)" = "$1" ] || usage 'the key of a resource is UTF-8' # else jq makes another of it
    path=$(printf '%s' "$1" | jq -Rrs 'split("/") | map(@uri | gsub("%3A"; ":")) | join("/")')
    echo "$gateway_url/v1/resources/$path"
}

resource_once()
{
    once "$verb" "$target" "$timeout_ms"
}

# resource METHOD KEY
resource()
{
    verb=$1 doubt='' loss_is_certain=no times=1
    target=$(resource_url "$2") || exit
    echo "Fencing-Token: $fencing" > "$place/headers"
    [ "$verb" != PUT ] || echo 'Content-Type: application/octet-stream' >> "$place/headers"
    [ "$verb" != GET ] || times=$attempts loss_is_certain=yes
    if [ -n "${IDEMPOTENCY_KEY:-}" ] && [ "$verb" != GET ]; then
        check_line "$IDEMPOTENCY_KEY" IDEMPOTENCY_KEY
        echo "Idempotency-Key: $IDEMPOTENCY_KEY" >> "$place/headers"
        times=$attempts # without it a second copy might arrive late, and undo what came after the first
    fi
    settle "$times" resource_once
}

# The next renewal: a third of the ttl after the last one was sent, somewhat earlier at random.
next_renewal()
{
    renew_at=$((deadline - ttl + ttl * (80 + $(random_below 21)) / 300))
}

watch_command()
{
    third=$((ttl / 3)) # one renewal that hangs leaves time for another
    next_renewal
    while kill -0 "$child" 2> /dev/null; do
        if [ "$(now_ms)" -ge "$deadline" ]; then
            outcome=$LOST problem="deadline-passed: $name was not renewed in time: it may be another's now"
        elif [ "$(now_ms)" -ge "$renew_at" ]; then
            ttl_asked='' retryable=false
            renew_once
            if [ "$outcome" -eq "$OK" ]; then next_renewal; else renew_at=$(($(now_ms) + ttl / 10)); fi
        fi
        if [ "$outcome" -eq "$LOST" ]; then
            kill -KILL "$child" 2> /dev/null
            wait "$child"
            tell "$problem" # now: nobody may read it
            exit $LOST
        fi
        sleep 0.05
    done
}

# Executes the command so that the kernel kills it when this script dies without a word (SIGKILL). Returns where that
# cannot be had. We may have died just before: then it has another parent, and does not begin.
dies_with_us()
{
    setpriv --pdeathsig KILL true 2> /dev/null || return 0
    # shellcheck disable=SC2016
    exec setpriv --pdeathsig KILL sh -c '[ "$PPID" -eq "$0" ] || kill -KILL "$$"; exec "$@"' "$$" "$@"
}

# When we are interrupted: the command is over, and gives back what it held.
stop()
{
    kill -KILL "$child" 2> /dev/null
    wait "$child"
    if [ "$outcome" -ne "$LOST" ]; then
        release_headers
        echo "Fencing-Token: $fencing" >> "$place/headers"
        release_once # what it does not do, the ttl does
    fi
    rm -rf "$place"
}

run()
{
    if [ "$#" -lt 5 ] || [ "$4" != -- ]; then
        usage 'run NAME TTL_MS WAIT_MS -- CMD...'
    fi
    acquire "$1" "$2" "$3"
    conclude
    shift 4
    exec 3<&0
    # The command gets the token, and not the lease_id, nothing of another hold, and the locale that we were given.
    (
        if [ -n "$locale" ]; then LC_ALL=$locale; else unset LC_ALL; fi
        unset PAWL_ACCESS_TOKEN
        unset PROPOSED_LEASE_ID PAWL_LEASE_ID LEASE_DEADLINE_MS PAWL_TOKEN_FILE
        export PAWL_LEASE="$name" PAWL_TOKEN="$token" PAWL_FENCING_TOKEN="$fencing"
        trap - EXIT
        dies_with_us "$@"
        exec "$@"
    ) <&3 3<&- &
    child=$!
    trap stop EXIT
    watch_command
    wait "$child"
    command_status=$?
    trap 'rm -rf "$place"' EXIT
    release
    [ "$outcome" -eq "$OK" ] || tell "release: $problem"
    [ "$outcome" -ne "$LOST" ] || exit $LOST
    exit "$command_status"
}

# Nobody could read the grant: it is given back, unless it was proposed, and so can be asked for again.
untold()
{
    outcome=$UNKNOWN
    [ -n "${PROPOSED_LEASE_ID:-}" ] || give_back
    tell 'the grant could not be written'
    [ "$outcome" -ne "$OK" ] || exit $REFUSED
    exit $UNKNOWN
}

print_deadline()
{
    echo "export LEASE_DEADLINE_MS=$deadline"
}

read -r _ < /proc/uptime || exit $NOT_DONE # the clock
for one in "$lease_url" "$gateway_url"; do
    case $one in unix:*) ;; *[?#@]*) usage "not the address of a service: $one" ;; esac
    [ -z "${PAWL_ACCESS_TOKEN_FILE:-}${PAWL_ACCESS_TOKEN:-}" ] || [ "${PAWL_ALLOW_PLAINTEXT:-}" = true ] || is_private "$one" ||
        usage "an access token is sent over https://, a unix socket and loopback alone, not to $one: PAWL_ALLOW_PLAINTEXT"
done
command=${1:-}
[ "$#" -eq 0 ] || shift
case $command in
acquire)
    acquire "$@"
    conclude
    if ! name=$name id=$id token=$token fencing=$fencing jq -nr '@sh "export PAWL_LEASE=\(env.name)",
        @sh "export PAWL_LEASE_ID=\(env.id)", @sh "export PAWL_TOKEN=\(env.token)",
        @sh "export PAWL_FENCING_TOKEN=\(env.fencing)"' || ! print_deadline; then
        untold
    fi
    ;;
renew)
    held
    in_time
    renew "$@"
    [ "$outcome" -ne "$LOST" ] || deadline=0
    print_deadline # it may have come nearer, also when it is not known
    conclude
    ;;
release)
    held
    late=no
    [ "$(now_ms)" -lt "$deadline" ] || late=yes
    release
    conclude
    [ "$late" = no ] || in_time
    ;;
remaining)
    held
    left=$((deadline - $(now_ms)))
    [ "$left" -gt 0 ] || left=0
    echo "$left"
    ;;
put)
    held
    [ -n "${1:-}" ] || usage 'put KEY [FILE]'
    cat -- "${2:--}" > "$place/body" || exit $USAGE
    in_time
    resource PUT "$1"
    conclude
    sed -n 's/\r$//; s/^[Ee][Tt][Aa][Gg]: *//p' "$place/told"
    ;;
get | delete)
    held
    in_time
    case $command in get) resource GET "${1:-}" ;; *) resource DELETE "${1:-}" ;; esac
    conclude
    [ "$command" = delete ] || cat "$place/answer"
    ;;
run) run "$@" ;;
*) usage 'acquire, renew, release, remaining, put, get, delete or run; the head of this file says how' ;;
esac
