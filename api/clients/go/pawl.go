// pawl.go - leases with fencing tokens; this file and guard.go, nothing but the standard library of Go 1.19.

// Package pawl takes leases, and writes with their fencing tokens.
//
//	client, err := pawl.New(pawl.Config{})             // PAWL_LEASE_URL, PAWL_GATEWAY_URL, or the usual ports of this machine
//	guard, err := client.Lock("orders:42", pawl.Options{TTL: 30 * time.Second, Holder: "billing-7"}).Acquire(ctx, 10*time.Second)
//	defer guard.Release(context.Background())              // not ctx: once that has ended nothing is sent by it
//	_, err = guard.Put(ctx, "orders:42", []byte("packed")) // refused (ErrLost) when somebody else has been granted it since
//	<-guard.Lost()                                         // closed at the loss, before the hold can have ended
//	http.Client{Transport: guard.Transport(nil)}           // its requests carry the token
//	session, err := client.OpenSession(ctx, pawl.Options{TTL: 15 * time.Second}) // one keep-alive for many leases
//	guards, err := client.AcquireAll(ctx, []string{"account:1", "account:2"}, pawl.Options{}, 0) // all or none
//	err = client.Events(ctx, "orders:42", "", func(one pawl.Event) error { ... })  // what happens to it, as it happens
//
// Every call ends in one of five ways: without an error (granted, or done), or with one that errors.Is
//
//	ErrHeld     certainly not granted: another holds it, or the wait is over
//	ErrLost     this hold is over: stop what it protected
//	ErrNotDone  certainly not done; (*Error).Retryable says whether the same may help later
//	ErrUnknown  it may have happened, or may yet happen. Never told as one of the others
//
// or ErrMistake, the caller's: nothing was sent. docs/clients.md says what to do about each.
//
// A hold is certainly ours until its deadline: the moment the answered request was sent, plus what was waited, plus what the
// service says is left, on Go's monotonic clock. On Linux that clock stands still while the machine sleeps: after a sleep
// Remaining says too much, by the length of the sleep, until a renewal or a write is refused.
package pawl

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

const (
	answerBytesMax = 64 << 20
	slice          = 20 * time.Second // of one request's wait in line, before a proxy ends it; of the place's keeping; of sitting out a restart
	waitMax        = 10 * time.Minute // docs/contract.md, "Limits": of several leases, of which no place is kept
	silenceMax     = time.Minute      // a stream of events says something every 15 s
	ttlMax         = 24 * time.Hour
	tokenMax       = 999_999_999_999_999
	waitedMax      = 1_000_000_000_000

	// Forever waits until the lease is granted, or the context ends.
	Forever = time.Duration(1<<63 - 1)
)

var (
	ErrHeld    = errors.New("held by another")
	ErrLost    = errors.New("the hold is over")
	ErrNotDone = errors.New("certainly not done")
	ErrUnknown = errors.New("it may have happened")
	ErrMistake = errors.New("a mistake of the caller's")

	namePattern    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)
	leaseIDPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{22,64}$`)
	sessionPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{16,64}$`)
	tokenPattern   = regexp.MustCompile(`^[!-~]+$`)
	localPattern   = regexp.MustCompile(`^(?i:localhost|127(\.[0-9]{1,3}){3}|::1)$`)
)

// Error is what kept a call from its end. Kind: ErrHeld, ErrLost, ErrNotDone or ErrUnknown. Code, Detail: of the service
// (api/problems.def), or this client's own ("not-sent", "no-answer", "bad-answer", "deadline-passed", "released", "aborted").
// Status: of HTTP, 0 if there was none. Holder, Ended: who holds it, and how a lost hold ended, if told. Cause: of an ErrUnknown
// what was said to a later attempt, if anything was; of "aborted" the context's error.
type Error struct {
	Kind                        error
	Code, Detail, Holder, Ended string
	Status                      int
	Retryable                   bool
	Cause                       error
	placeKept                   bool
}

func (e *Error) Error() string        { return e.Code + ": " + e.Detail }
func (e *Error) Is(target error) bool { return target == e.Kind }

// Unwrap passes refusals by: what was said to a later attempt is not what err is.
func (e *Error) Unwrap() error {
	cause := e.Cause
	for one, ours := cause.(*Error); ours; one, ours = cause.(*Error) {
		cause = one.Cause
	}
	return cause
}

func mistake(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMistake}, args...)...)
}

func foreign(status int, why string) *Error {
	return &Error{Kind: ErrUnknown, Code: "bad-answer", Detail: fmt.Sprintf("status %d, %s; it may have happened", status, why), Status: status}
}

// Config: a URL that is empty comes from the environment, or is the usual one; it may be unix:/path. Timeout: of one attempt, without
// its wait in line (5 s). Attempts: at most, of what is safe to repeat (3). AccessToken, or the file where it stands, which is read for
// each request; without either PAWL_ACCESS_TOKEN_FILE or PAWL_ACCESS_TOKEN. CACert, Cert, CertKey: files, of https; else PAWL_CACERT,
// PAWL_CERT, PAWL_CERT_KEY. AllowPlaintext: the access token goes over http:// to other machines, too.
type Config struct {
	LeaseURL, GatewayURL         string
	Timeout                      time.Duration
	Attempts                     int
	AccessToken, AccessTokenFile string
	CACert, Cert, CertKey        string
	AllowPlaintext               bool
}

// Client talks to the two services. Safe for use by several goroutines.
type Client struct {
	lease, gateway string
	timeout        time.Duration
	attempts       int
	http           http.Client
	access         func() (string, error) // the access token that there is now, or ""
	sockets        map[string]string      // of a service's host, if it has one
	load           func() (*tls.Config, error)
	trust          atomic.Pointer[tls.Config] // as it was loaded last
}

func New(config Config) (*Client, error) {
	c := &Client{timeout: config.Timeout, attempts: config.Attempts, load: config.trust}
	if c.timeout <= 0 {
		c.timeout = 5 * time.Second
	}
	if c.attempts <= 0 {
		c.attempts = 3
	}
	if config.AccessToken == "" && config.AccessTokenFile == "" {
		config.AccessToken, config.AccessTokenFile = os.Getenv("PAWL_ACCESS_TOKEN"), os.Getenv("PAWL_ACCESS_TOKEN_FILE")
	}
	c.access, c.sockets = config.access, map[string]string{}
	var err error
	if c.lease, err = c.base(config, "lease", config.LeaseURL, "PAWL_LEASE_URL", "http://127.0.0.1:8700"); err == nil {
		c.gateway, err = c.base(config, "gateway", config.GatewayURL, "PAWL_GATEWAY_URL", "http://127.0.0.1:8701")
	}
	if err == nil {
		err = c.reload()
	}
	// A connection for each request, so that nothing is sent twice behind our back; no proxy, no redirect.
	c.http.Transport = &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialTLSContext: c.dialTLS, DialContext: c.dial}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, err
}

func first(texts ...string) string {
	for _, one := range texts {
		if one != "" {
			return one
		}
	}
	return ""
}

func (c *Client) base(config Config, service, given, variable, usual string) (string, error) {
	given = first(given, os.Getenv(variable), usual)
	if strings.HasPrefix(given, "unix:/") {
		host := service + ".localhost" // within this process
		c.sockets[host] = strings.TrimPrefix(given, "unix:")
		return "http://" + host, nil
	}
	parts, err := url.Parse(given)
	if err != nil || parts.Scheme != "http" && parts.Scheme != "https" || parts.Host == "" || parts.User != nil || parts.RawQuery != "" || parts.Fragment != "" {
		return "", mistake("not the address of a service: %s", given)
	}
	if first(config.AccessToken, config.AccessTokenFile) != "" && parts.Scheme == "http" && !config.AllowPlaintext && !localPattern.MatchString(parts.Hostname()) {
		return "", mistake("an access token is sent over https://, a unix socket and loopback alone, not to %s: AllowPlaintext", given)
	}
	return strings.TrimRight(given, "/"), nil
}

func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if path, there := c.sockets[strings.TrimSuffix(address, ":80")]; there {
		network, address = "unix", path
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

func (c *Client) reload() error {
	now, err := c.load()
	if err == nil {
		c.trust.Store(now)
	}
	return err
}

// dialTLS goes by what the files have now; while that cannot be used (one is new, another is not yet), by what they had before.
func (c *Client) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	plain, err := c.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	_ = c.reload()
	to := c.trust.Load().Clone()
	to.ServerName, _, _ = net.SplitHostPort(address)
	over := tls.Client(plain, to)
	if err = over.HandshakeContext(ctx); err != nil {
		plain.Close()
		return nil, err
	}
	return over, nil
}

// access is in no message.
func (config Config) access() (string, error) {
	token := config.AccessToken
	if config.AccessTokenFile != "" {
		text, err := os.ReadFile(config.AccessTokenFile)
		if err != nil {
			return "", &Error{Kind: ErrNotDone, Code: "not-sent", Detail: "the access token: " + err.Error() + "; nothing was sent", Retryable: true}
		}
		token = strings.TrimRight(string(text), "\r\n")
	}
	if first(config.AccessTokenFile, token) != "" && (!tokenPattern.MatchString(token) || len(token) > 4094) {
		return "", &Error{Kind: ErrNotDone, Code: "not-sent", Detail: "the access token is none; nothing was sent", Retryable: true}
	}
	return token, nil
}

func (config Config) trust() (*tls.Config, error) {
	to := &tls.Config{}
	if file := first(config.CACert, os.Getenv("PAWL_CACERT")); file != "" {
		text, err := os.ReadFile(file)
		to.RootCAs = x509.NewCertPool()
		if err != nil || !to.RootCAs.AppendCertsFromPEM(text) {
			return nil, mistake("no certificate in %s: %v", file, err)
		}
	}
	if file := first(config.Cert, os.Getenv("PAWL_CERT")); file != "" {
		own, err := tls.LoadX509KeyPair(file, first(config.CertKey, os.Getenv("PAWL_CERT_KEY")))
		if err != nil {
			return nil, mistake("%v", err)
		}
		to.Certificates = []tls.Certificate{own}
	}
	return to, nil
}

// -- one request, sent once

type answer struct {
	status         int
	header         http.Header
	body           []byte
	sent, received time.Time
}

// send gives the whole answer; ErrNotDone while nothing has left, ErrUnknown after that.
func (c *Client) send(ctx context.Context, method, url string, header http.Header, body []byte, limit time.Duration) (*answer, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a := &answer{sent: time.Now()}
	response, connected, err := c.open(limited, method, url, header, body)
	if err != nil {
		return nil, broken(ctx, connected, err)
	}
	defer response.Body.Close()
	a.status, a.header = response.StatusCode, response.Header
	if response.ContentLength < 0 && len(response.TransferEncoding) == 0 && a.status != 204 && a.status != 304 {
		err = errors.New("an answer without a length")
	} else if a.body, err = io.ReadAll(io.LimitReader(response.Body, answerBytesMax+1)); err == nil && len(a.body) > answerBytesMax {
		err = errors.New("the answer is too long")
	}
	if err != nil {
		return nil, broken(ctx, true, err)
	}
	a.received = time.Now()
	return a, nil
}

// open leaves the body to be read.
func (c *Client) open(ctx context.Context, method, url string, header http.Header, body []byte) (response *http.Response, connected bool, err error) {
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }})
	request, err := http.NewRequestWithContext(traced, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, false, mistake("%v", err)
	}
	for name, values := range header {
		if strings.ContainsAny(values[0], "\r\n\x00") {
			return nil, false, mistake("the header %s cannot be sent", name)
		}
		request.Header[name] = values
	}
	token, err := c.access()
	if err != nil {
		return nil, false, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if _, there := c.sockets[request.Host]; there {
		request.Host = "localhost"
	}
	response, err = c.http.Do(request)
	if err == nil && response.StatusCode == http.StatusSwitchingProtocols { // its body ends with no context
		response.Body.Close()
		err = errors.New("the answer is none")
	}
	return response, connected, err
}

func broken(ctx context.Context, connected bool, err error) error {
	if _, ours := err.(*Error); ours || errors.Is(err, ErrMistake) {
		return err
	}
	e := &Error{Kind: ErrUnknown, Code: "no-answer", Detail: err.Error() + "; it may have happened"}
	if !connected {
		e = &Error{Kind: ErrNotDone, Code: "not-sent", Detail: err.Error() + "; nothing was sent", Retryable: true}
	}
	if ctx.Err() != nil {
		e.Code, e.Retryable, e.Cause = "aborted", false, ctx.Err()
	}
	return e
}

// problemOf is what the answer means when it is not one of done. A problem counts only as Pawl tells it: somebody between, who
// does not know what became of the request, may have answered.
func problemOf(a *answer, done ...int) error {
	for _, status := range done {
		if a.status == status {
			return nil
		}
	}
	var told struct {
		Type, Code, Detail, Holder, Ended string
		Status                            int
		Retryable                         bool
		PlaceKept                         int64 `json:"place_kept_ms"`
	}
	if !strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json") || json.Unmarshal(a.body, &told) != nil ||
		told.Code == "" || told.Type != "/problems/"+told.Code || told.Status != a.status {
		return foreign(a.status, "not as Pawl answers")
	}
	e := &Error{Code: told.Code, Detail: told.Detail, Holder: told.Holder, Ended: told.Ended, Status: a.status,
		Retryable: told.Retryable, placeKept: told.PlaceKept > 0}
	switch {
	case told.Code == "lease-held" || told.Code == "wait-timeout":
		e.Kind = ErrHeld
	case told.Code == "lease-lost" || told.Code == "hold-over" || told.Code == "session-lost" || told.Code == "stale-token" || told.Code == "lease-expired":
		e.Kind = ErrLost
	case a.status == 501 || a.status == 503 || a.status >= 400 && a.status < 500 || told.Code == "upstream-unavailable":
		e.Kind = ErrNotDone
	default:
		e.Kind = ErrUnknown // 504, 500, and what we do not know
	}
	return e
}

// told is what a grant and a session have in common, and what is kept of them. Pointers: a member that is missing is no answer.
type told struct {
	Lease, Holder, Mode string
	LeaseID             string `json:"lease_id"`
	FencingToken        string `json:"fencing_token"`
	Token, Epoch        int64
	Session             string
	SessionSecret       string    `json:"session_secret"`
	LostNames           *[]string `json:"lost"`
	TTL                 *int64    `json:"ttl_ms"`
	Left                *int64    `json:"expires_in_ms"`
	Waited              *int64    `json:"waited_ms"`
	ttl                 time.Duration
	begun, deadline     time.Time // deadline: when it ends, at the earliest
}

func within(value *int64, most int64) bool { return value != nil && *value >= 0 && *value <= most }

// times fills in the last three; false: there are none within the contract's limits.
func (t *told) times(a *answer) bool {
	if !within(t.TTL, ttlMax.Milliseconds()) || !within(t.Left, ttlMax.Milliseconds()) || t.Waited != nil && !within(t.Waited, waitedMax) {
		return false
	}
	t.begun = a.sent
	if t.Waited != nil {
		waited := time.Duration(*t.Waited) * time.Millisecond
		if most := a.received.Sub(a.sent); waited > most {
			waited = most
		}
		t.begun = a.sent.Add(waited)
	}
	t.ttl = time.Duration(*t.TTL) * time.Millisecond
	t.deadline = t.begun.Add(time.Duration(*t.Left-1) * time.Millisecond) // the store's clock is cut to milliseconds
	return true
}

func (t *told) grants(a *answer, name, leaseID string) error {
	if t.Waited == nil || !t.times(a) || *t.TTL < 1 || t.Token < 1 || t.Token > tokenMax || !tokenPattern.MatchString(t.FencingToken) || len(t.FencingToken) > 1024 || t.Lease != name || t.LeaseID != leaseID {
		return foreign(a.status, "not a grant of this lease")
	}
	return nil
}

// Attempts until the end is known. A loss that speaks of the hold is one whatever an earlier attempt did.
func (c *Client) settle(ctx context.Context, attempts int, lossIsCertain bool, attempt func() error) error {
	var doubt *Error
	for number := 1; ; number++ {
		err := attempt()
		e, ours := err.(*Error)
		if !ours || e.Kind == ErrLost && lossIsCertain {
			return err
		}
		if e.Kind == ErrUnknown {
			doubt = e
		}
		if number >= attempts || e.Code == "aborted" || e.Kind != ErrUnknown && !(e.Kind == ErrNotDone && e.Retryable) {
			return inDoubt(doubt, e)
		}
		pause(ctx, number)
	}
}

// inDoubt is how it ended: once something may have happened, a refusal is no proof that nothing was done, for the earlier
// request may be done after the later one was refused.
func inDoubt(doubt, last *Error) error {
	if doubt == nil || last.Kind == ErrUnknown {
		return last
	}
	return &Error{Kind: ErrUnknown, Code: doubt.Code, Detail: doubt.Detail + "; asked again: " + last.Error(), Status: doubt.Status, Cause: last}
}

func pause(ctx context.Context, tried int) {
	if tried > 4 {
		tried = 4
	}
	timer := time.NewTimer(time.Duration(float64(50*time.Millisecond) * float64(int(1)<<(tried-1)) * (1 + mathrand.Float64())))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func random(size int) string {
	made := make([]byte, size)
	if _, err := rand.Read(made); err != nil {
		panic(err) // no system without random bytes is safe
	}
	return base64.RawURLEncoding.EncodeToString(made)
}

func headers(pairs ...string) http.Header {
	made := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			made.Set(pairs[i], pairs[i+1])
		}
	}
	return made
}

// -- acquire

// Options: how a lease is asked for; all may be left out. TTL: 30 s. Mode: "exclusive" or "shared". Permits: a counting
// semaphore, instead of a mode. LeaseID: to propose, for one hold; without it each has a random one, and so a lost answer is asked
// for again. Holder: a label for people.
type Options struct {
	TTL, LockDelay        time.Duration
	Holder, Mode, LeaseID string
	Permits               int
	Meta                  map[string]any
}

type ask map[string]any

func (o Options) ask() (ask, error) {
	if o.TTL == 0 {
		o.TTL = 30 * time.Second
	}
	if o.TTL < 100*time.Millisecond || o.TTL > ttlMax {
		return nil, mistake("a TTL is 100 ms to 24 h, not %v", o.TTL)
	}
	if o.LeaseID != "" && !leaseIDPattern.MatchString(o.LeaseID) {
		return nil, mistake("LeaseID: 22 to 64 of A-Z a-z 0-9 _ -")
	}
	made := ask{"ttl_ms": o.TTL.Milliseconds(), "lease_id": o.LeaseID}
	if o.LeaseID == "" {
		made["lease_id"] = random(24)
	}
	for key, value := range map[string]string{"holder": o.Holder, "mode": o.Mode} {
		if value != "" {
			made[key] = value
		}
	}
	if o.Permits != 0 {
		made["permits"] = o.Permits
	}
	if o.LockDelay != 0 {
		made["lock_delay_ms"] = o.LockDelay.Milliseconds()
	}
	if o.Meta != nil {
		made["meta"] = o.Meta
	}
	return made, nil
}

func (a ask) with(key string, value any) ask {
	made := ask{key: value}
	for key, value := range a {
		if _, there := made[key]; !there {
			made[key] = value
		}
	}
	return made
}

// AcquireAll takes all of the leases or none; the Guards in the order of names. wait: see Lock.Acquire; no place in line outlives
// its connection.
func (c *Client) AcquireAll(ctx context.Context, names []string, options Options, wait time.Duration) ([]*Guard, error) {
	return c.acquire(ctx, c.lease+"/v1/leases", names, options, wait, nil, true)
}

func (c *Client) acquire(ctx context.Context, url string, names []string, options Options, wait time.Duration, session *Session, several bool) ([]*Guard, error) {
	body, err := options.ask()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !namePattern.MatchString(name) {
			return nil, mistake("not the name of a lease: %q", name)
		}
	}
	if several {
		body["names"] = names
	}
	header := headers("Content-Type", "application/json")
	if session != nil {
		body["session"] = session.ID
		header.Set("Session-Secret", session.secret)
	}
	got, err := c.obtain(ctx, url, body, header, names, wait)
	if err != nil {
		if options.LeaseID == "" && (errors.Is(err, ErrUnknown) || ctx.Err() != nil && wait > 0) {
			c.forget(url, body, header, names, wait > 0)
		}
		return nil, err
	}
	back, cancel := context.WithTimeout(context.Background(), c.timeout) // of all that is given back; ctx may have ended
	defer cancel()
	guards := make([]*Guard, len(got))
	for i, one := range got {
		guards[i] = newGuard(c, one, session)
	}
	for _, one := range guards {
		if err := one.Err(); err != nil { // the grant came too late
			for _, other := range guards {
				if options.LeaseID == "" {
					_ = other.Release(back)
				} else {
					other.leave() // the same acquire may be made again
				}
			}
			return nil, err
		}
	}
	return guards, nil
}

// obtain waits in slices, and keeps the place in line between them; while nobody of Pawl's answers, as long as the place is kept.
func (c *Client) obtain(ctx context.Context, url string, body ask, header http.Header, names []string, wait time.Duration) ([]*told, error) {
	begun, heard, most := time.Now(), time.Now(), slice
	if _, several := body["names"]; several {
		most = waitMax
	}
	var doubt *Error
	asked := false // in line: what gives the place back may yet be granted the lease
	for tried := 0; ; {
		sent, left, request := time.Now(), wait-time.Since(begun), body
		part := left
		if part > most {
			part = most
		}
		if part < time.Millisecond {
			part = time.Millisecond
		}
		if wait > 0 {
			request = body.with("wait_ms", part.Milliseconds())
			if left > 0 && most == slice {
				request["keep_place_ms"] = slice.Milliseconds()
			}
		}
		got, err := c.grants(ctx, url, request, header, names)
		e, ours := err.(*Error)
		if !ours || e.Kind == ErrLost {
			return got, err
		}
		switch {
		case e.Code == "aborted":
			if doubt == nil && asked {
				doubt = &Error{Kind: ErrUnknown, Code: e.Code, Detail: "given up in line"}
			}
			return nil, inDoubt(doubt, e)
		case e.Kind == ErrHeld:
			if e.Code != "wait-timeout" || left <= most && !e.placeKept {
				return nil, inDoubt(doubt, e)
			}
			tried, heard, asked = 0, time.Now(), true
			continue
		case e.Kind == ErrUnknown:
			doubt = e
		case !e.Retryable && !(doubt != nil && e.Code == "superseded"): // superseded: by our own request, late
			return nil, inDoubt(doubt, e)
		}
		tried++
		asked = asked || wait > 0 && e.Code != "not-sent"
		if took := time.Since(sent); left > 0 && e.Code != "not-sent" && took >= time.Second && took < part+c.timeout {
			tried, heard = 1, time.Now() // somebody was there until it broke
		}
		if tried >= c.attempts && (left <= 0 || time.Since(heard) > slice) {
			return nil, inDoubt(doubt, e)
		}
		pause(ctx, tried)
	}
}

func (c *Client) grants(ctx context.Context, url string, body ask, header http.Header, names []string) ([]*told, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, mistake("%v", err)
	}
	wait, _ := body["wait_ms"].(int64)
	a, err := c.send(ctx, "POST", url, header, text, time.Duration(wait)*time.Millisecond+c.timeout)
	if err == nil {
		err = problemOf(a, 200, 201)
	}
	if err != nil {
		return nil, err
	}
	all := struct{ Grants []*told }{Grants: []*told{{}}}
	if _, several := body["names"]; several {
		err = json.Unmarshal(a.body, &all)
	} else {
		err = json.Unmarshal(a.body, all.Grants[0])
	}
	if err != nil || len(all.Grants) != len(names) {
		return nil, foreign(a.status, "not a grant of these leases")
	}
	for i, one := range all.Grants {
		if one == nil {
			return nil, foreign(a.status, "not a grant of these leases")
		}
		if err := one.grants(a, names[i], body["lease_id"].(string)); err != nil {
			return nil, err
		}
	}
	return all.Grants, nil
}

// forget gives the place in line back, by a request that takes it and keeps it no more, and what may be held, in as long as one
// attempt may take each.
func (c *Client) forget(url string, body ask, header http.Header, names []string, waited bool) {
	if waited {
		_, _ = c.grants(context.Background(), url, body.with("wait_ms", int64(1)), header, names)
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	for _, name := range names {
		_ = c.release(ctx, name, body["lease_id"].(string), "", 1) // what it does not do, the ttl does
	}
}

// The key makes a repeated release count once, however often it was entered.
func (c *Client) release(ctx context.Context, name, leaseID, token string, attempts int) error {
	header := headers("Lease-Id", leaseID, "Fencing-Token", token, "Idempotency-Key", random(16))
	return c.settle(ctx, attempts, true, func() error {
		a, err := c.send(ctx, "DELETE", c.lease+"/v1/leases/"+name, header, nil, c.timeout)
		if err == nil {
			err = problemOf(a, 200, 204)
		}
		var left struct{ Holds int }
		if err == nil && a.status == 200 && (json.Unmarshal(a.body, &left) != nil || left.Holds < 1) {
			err = foreign(a.status, "not as Pawl answers")
		}
		return err
	})
}

// -- resources, through the gateway

// Write: what goes with a write; all may be empty. It is sent once, unless it has an IdempotencyKey: a second copy may arrive
// late, and undo what came after the first.
type Write struct {
	ContentType, IfMatch, IfNoneMatch, IdempotencyKey string
}

type Resource struct {
	Body              []byte
	ETag, ContentType string
}

func (c *Client) resource(key string) (string, error) {
	parts := strings.Split(key, "/")
	for i, part := range parts {
		if part == "" || part == "." || part == ".." || !utf8.ValidString(part) || i == 0 && !namePattern.MatchString(part) {
			return "", mistake("not the key of a resource: %q", key)
		}
		parts[i] = url.PathEscape(part)
	}
	return c.gateway + "/v1/resources/" + strings.Join(parts, "/"), nil
}

func (c *Client) call(ctx context.Context, method, key string, header http.Header, body []byte, attempts int, done ...int) (*answer, error) {
	url, err := c.resource(key)
	if err != nil {
		return nil, err
	}
	var a *answer
	err = c.settle(ctx, attempts, method == "GET", func() error {
		var err error
		if a, err = c.send(ctx, method, url, header, body, c.timeout); err == nil {
			err = problemOf(a, done...)
		}
		if err == nil { // what the gateway always says
			etag, written := a.header.Get("ETag") != "", strings.HasPrefix(a.header.Get("Fencing-Status"), "pawl;")
			if method == "GET" && (!etag || a.header.Get("Fencing-Mark") == "") || method == "PUT" && !(etag && written) || method == "DELETE" && !written {
				err = foreign(a.status, "not as a gateway of Pawl's answers")
			}
		}
		return err
	})
	return a, err
}

func (c *Client) write(ctx context.Context, method, key, token string, body []byte, with []Write, done ...int) (string, error) {
	header, attempts := headers("Fencing-Token", token), 1
	for _, one := range with {
		header = headers("Fencing-Token", token, "Content-Type", one.ContentType, "If-Match", one.IfMatch, "If-None-Match", one.IfNoneMatch, "Idempotency-Key", one.IdempotencyKey)
		if one.IdempotencyKey != "" {
			attempts = c.attempts
		}
	}
	a, err := c.call(ctx, method, key, header, body, attempts, done...)
	if err != nil {
		return "", err
	}
	return a.header.Get("ETag"), nil
}

// Get reads; with a token (which may be "") the read is fenced: after it no older write lands.
func (c *Client) Get(ctx context.Context, key, token string) (*Resource, error) {
	a, err := c.call(ctx, "GET", key, headers("Fencing-Token", token), nil, c.attempts, 200)
	if err != nil {
		return nil, err
	}
	return &Resource{a.body, a.header.Get("ETag"), a.header.Get("Content-Type")}, nil
}

// -- events

// Event: an item of the history; of Type "missed" nothing else is told.
type Event struct {
	ID, Type, Lease, Holder, Reason string
	Token                           int64
	AtMS                            int64 `json:"at_ms"`
}

// Events calls each with what happens to this lease, or to all (""), as it happens, until it says an error or ctx ends: that is
// returned, or what kept the first connection, or a refusal of Pawl's that stays. After a break it goes on behind the last one; what
// cannot be made up for is told as an Event of Type "missed". A convenience, never the safety: the fence is.
func (c *Client) Events(ctx context.Context, name, since string, each func(Event) error) error {
	address := c.lease + "/v1/events"
	if name != "" {
		if !namePattern.MatchString(name) {
			return mistake("not the name of a lease: %q", name)
		}
		address += "?lease=" + name
	}
	listens := false
	for ctx.Err() == nil {
		stop, err := c.listen(ctx, address, &since, &listens, each)
		e, ours := err.(*Error)
		switch {
		case stop:
			return err
		case ours && e.Code == "cursor-expired":
			since, listens = "", true
		case ours && (!listens || e.Kind != ErrUnknown && e.Status/100 == 4 && !e.Retryable), errors.Is(err, ErrMistake):
			return err
		}
		pause(ctx, 3)
	}
	return ctx.Err()
}

// listen is one stream. stop: each has said err.
func (c *Client) listen(ctx context.Context, address string, last *string, listens *bool, each func(Event) error) (stop bool, err error) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(c.timeout, cancel)
	defer silence.Stop()
	response, connected, err := c.open(limited, "GET", address, headers("Accept", "text/event-stream", "Last-Event-ID", *last), nil)
	if err != nil {
		return false, broken(ctx, connected, err)
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		a := &answer{status: response.StatusCode, header: response.Header}
		a.body, _ = io.ReadAll(io.LimitReader(response.Body, answerBytesMax))
		return false, problemOf(a)
	}
	if *listens && *last == "" {
		if err := each(Event{Type: "missed"}); err != nil {
			return true, err
		}
	}
	*listens = true
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, answerBytesMax)
	silence.Reset(silenceMax)
	for coming, data := *last, ""; lines.Scan(); silence.Reset(silenceMax) {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case field == "id":
			coming = value
		case field == "data":
			data += value
		case lines.Text() == "": // half an event has not been seen
			var one Event
			*last = coming
			if data != "" && json.Unmarshal([]byte(data), &one) == nil {
				if err := each(one); err != nil {
					return true, err
				}
			}
			data = ""
		}
	}
	return false, lines.Err()
}
