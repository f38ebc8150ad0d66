// guard.go - a lease that is held, and a session: what is ours until its deadline, and is renewed by a goroutine of its own.

package pawl

import (
	"context"
	"encoding/json"
	"errors"
	mathrand "math/rand"
	"net/http"
	"strings"
	"sync"
	"time"
)

// kept is ours until its deadline. Lost stays lost: once the deadline has passed here, no late answer brings it back.
type kept struct {
	c       *Client
	name    string
	session *Session // which it lives as long as, or nil
	renew   func(ctx context.Context, ttl, limit time.Duration) (*told, error)

	lostChan, ended, changed chan struct{} // ended: lost or released; changed: its times
	renewing                 sync.Mutex    // one at a time: of two TTLs the one that was told last must be the one that counts
	mu                       sync.Mutex
	deadline, renewAt        time.Time
	ttl, least               time.Duration // least: the shortest of a renewal that may still be on its way; 0: there is none
	released                 bool
	lost                     *Error
	watch                    *time.Timer // sees the deadline, whatever a renewal waits for
}

func (k *kept) init(c *Client, name string, session *Session, got *told) {
	k.c, k.name, k.session = c, name, session
	k.lostChan, k.ended, k.changed = make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told(got)
}

func jitter(d time.Duration, least float64) time.Duration {
	return time.Duration(float64(d) * (least + (1-least)*mathrand.Float64()))
}

func (k *kept) told(got *told) {
	k.deadline, k.ttl = got.deadline, got.ttl
	if most := got.begun.Add(k.least); k.least > 0 && most.Before(k.deadline) {
		k.deadline, k.ttl = most, k.least
	}
	k.renewAt = got.begun.Add(jitter(k.ttl/3, 0.8))
	k.watchDeadline()
}

func (k *kept) watchDeadline() {
	if k.watch != nil {
		k.watch.Stop()
	}
	k.watch = time.AfterFunc(time.Until(k.deadline), func() { _ = k.Err() })
}

func (k *kept) end() time.Time {
	if k.session != nil {
		k.session.mu.Lock()
		defer k.session.mu.Unlock()
		if k.session.deadline.After(k.deadline) {
			return k.session.deadline
		}
	}
	return k.deadline
}

// Lost is closed at the loss, at the latest when the hold may have ended.
func (k *kept) Lost() <-chan struct{} { return k.lostChan }

// Err is an ErrLost when it is lost, or has been released; else nil.
func (k *kept) Err() error {
	_, err := k.left()
	return err
}

func (k *kept) left() (time.Duration, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.leftLocked()
}

// leftLocked looks at the clock once: what it says is over is marked as lost, and nothing else is told as over.
func (k *kept) leftLocked() (time.Duration, error) {
	if k.session != nil {
		if err, _ := k.session.Err().(*Error); err != nil {
			k.loseLocked(err)
		}
	}
	left := time.Until(k.end())
	if k.lost == nil && !k.released && left <= 0 {
		k.loseLocked(&Error{Kind: ErrLost, Code: "deadline-passed", Detail: k.name + " could not be renewed in time: it may be another's now"})
	}
	if k.lost != nil {
		return 0, k.lost
	}
	if k.released {
		return 0, &Error{Kind: ErrLost, Code: "released", Detail: k.name + " has been released here"}
	}
	return left, nil
}

func (k *kept) lose(err *Error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loseLocked(err)
}

func (k *kept) loseLocked(err *Error) {
	if k.lost != nil || k.released {
		return
	}
	if err.Code == "released" { // its session
		k.released = true
	} else {
		k.lost = err
		close(k.lostChan)
	}
	k.watch.Stop()
	close(k.ended)
}

// Remaining is how long it is certainly held yet, by the clock read in this very call; 0 when it is lost, released or past its
// deadline, and from then on always 0.
func (k *kept) Remaining() time.Duration {
	left, _ := k.left()
	return left
}

// keep renews it until it ends.
func (k *kept) keep() {
	for k.Err() == nil {
		k.mu.Lock()
		next := k.renewAt
		if k.deadline.Before(next) {
			next = k.deadline
		}
		k.mu.Unlock()
		timer := time.NewTimer(time.Until(next))
		select {
		case <-k.ended:
		case <-k.changed:
		case <-timer.C:
			if k.Err() == nil && k.renewOnce(context.Background(), 0) != nil {
				k.mu.Lock()
				soon := k.ttl / 10
				if left := time.Until(k.deadline) / 4; left < soon {
					soon = left
				}
				k.renewAt = time.Now().Add(10*time.Millisecond + jitter(soon, 0.5))
				k.mu.Unlock()
			}
		}
		timer.Stop()
	}
}

// renewOnce: a ttl of 0 is that of before.
func (k *kept) renewOnce(ctx context.Context, ttl time.Duration) error {
	k.renewing.Lock()
	defer k.renewing.Unlock()
	if err := k.Err(); err != nil {
		return err
	}
	begun := time.Now()
	k.mu.Lock()
	third, before := k.ttl/3, k.deadline
	if nearer := begun.Add(ttl); ttl > 0 && nearer.Before(before) { // if it is done, the end is nearer from now on
		k.ends(nearer)
		k.renewAt = begun.Add(ttl / 3)
	}
	k.mu.Unlock()
	limit := k.Remaining() // one that hangs leaves time for another
	for _, most := range []time.Duration{k.c.timeout, third} {
		if limit > most {
			limit = most
		}
	}
	got, err := k.renew(ctx, ttl, limit)
	if err != nil {
		var e *Error
		if errors.As(err, &e) && e.Kind == ErrLost {
			k.lose(e)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if errors.Is(err, ErrNotDone) {
			k.ends(before)
		} else if ttl > 0 && errors.Is(err, ErrUnknown) && (k.least == 0 || ttl < k.least) {
			k.least = ttl
		}
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, err := k.leftLocked(); err != nil {
		return err
	}
	k.told(got)
	k.wake()
	return nil
}

func (k *kept) ends(deadline time.Time) {
	k.deadline = deadline
	k.watchDeadline()
	k.wake()
}

func (k *kept) wake() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// leave marks it as released: whether that was still to be done, and the loss.
func (k *kept) leave() (bool, *Error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, over := k.leftLocked()
	if k.released {
		return false, nil
	}
	k.released = true
	k.watch.Stop()
	if k.lost == nil {
		close(k.ended)
	}
	err, _ := over.(*Error)
	return true, err
}

// Lock is a lease by its name; nothing is sent before Acquire.
type Lock struct {
	c       *Client
	session *Session
	name    string
	options Options
}

func (c *Client) Lock(name string, options Options) *Lock { return &Lock{c, nil, name, options} }

// Acquire waits in line, first come, first served, for so long at most; 0 asks once, Forever waits until ctx ends. Connections
// that break and restarts of the services do not cost the place in line. When it is not known at the end whether it was granted, a
// LeaseID that was made at random is released, once, and ErrUnknown is said all the same.
func (l *Lock) Acquire(ctx context.Context, wait time.Duration) (*Guard, error) {
	guards, err := l.c.acquire(ctx, l.c.lease+"/v1/leases/"+l.name, []string{l.name}, l.options, wait, l.session, false)
	if err != nil {
		return nil, err
	}
	return guards[0], nil
}

// Do calls work while it holds the lease, with a context that ends with the hold, and releases it, however work ends. A loss is
// told, unless work has failed.
func (l *Lock) Do(ctx context.Context, wait time.Duration, work func(ctx context.Context, guard *Guard) error) (err error) {
	guard, err := l.Acquire(ctx, wait)
	if err != nil {
		return err
	}
	defer func() {
		if released := guard.Release(context.Background()); err == nil && errors.Is(released, ErrLost) {
			err = released
		}
	}()
	within, cancel := guard.Context(ctx)
	defer cancel()
	return work(within, guard)
}

// Guard is a lease that is held.
type Guard struct {
	kept
	Token, Epoch                     int64
	FencingToken, Name, Mode, Holder string
	leaseID                          string
}

func newGuard(c *Client, got *told, session *Session) *Guard {
	g := &Guard{Token: got.Token, Epoch: got.Epoch, FencingToken: got.FencingToken, Name: got.Lease, Mode: got.Mode,
		Holder: got.Holder, leaseID: got.LeaseID}
	g.kept.renew = g.ask
	g.init(c, got.Lease, session, got)
	if session == nil {
		go g.keep()
	} else {
		session.guards.Store(g, nil)
	}
	return g
}

func (g *Guard) ask(ctx context.Context, ttl, limit time.Duration) (*told, error) {
	header, body := headers("Lease-Id", g.leaseID, "Fencing-Token", g.FencingToken), []byte(nil)
	if ttl > 0 {
		header.Set("Content-Type", "application/json")
		body, _ = json.Marshal(ask{"ttl_ms": ttl.Milliseconds()})
	}
	a, err := g.c.send(ctx, "PUT", g.c.lease+"/v1/leases/"+g.Name, header, body, limit)
	if err == nil {
		err = problemOf(a, 200)
	}
	if err != nil {
		return nil, err
	}
	got := &told{}
	if json.Unmarshal(a.body, got) != nil {
		return nil, foreign(a.status, "not a grant")
	}
	if err = got.grants(a, g.Name, g.leaseID); err == nil && got.Token != g.Token {
		err = foreign(a.status, "not about this hold")
	}
	return got, err
}

// Renew now, longer or shorter; with a ttl of 0 as before. It is renewed without this, too. What is in a session lives as long as
// that, and is only asked for.
func (g *Guard) Renew(ctx context.Context, ttl time.Duration) error {
	if ttl != 0 && (ttl < 100*time.Millisecond || ttl > ttlMax) {
		return mistake("a TTL is 100 ms to 24 h, not %v", ttl)
	}
	if g.session != nil {
		ttl = 0
	}
	return g.c.settle(ctx, g.c.attempts, true, func() error { return g.renewOnce(ctx, ttl) })
}

// Release ends it; again, after that, it does nothing. ErrLost: it was over before, perhaps while you worked. ErrNotDone,
// ErrUnknown: it ends by its ttl at the latest.
func (g *Guard) Release(ctx context.Context) error {
	todo, lost := g.leave()
	if !todo {
		return nil
	}
	if g.session != nil {
		g.session.guards.Delete(g)
	}
	if lost != nil {
		_ = g.c.release(ctx, g.Name, g.leaseID, g.FencingToken, 1) // what it does not do, the ttl does
		return lost
	}
	return g.c.release(ctx, g.Name, g.leaseID, g.FencingToken, g.c.attempts)
}

// heldContext looks at the clock whenever it is asked: after a pause its goroutine may not have run yet.
type heldContext struct {
	context.Context
	guard *Guard
	end   context.CancelFunc
}

func (h heldContext) Err() error {
	if h.guard.Err() != nil {
		h.end()
	}
	return h.Context.Err()
}

// Context ends with the hold, as well as with its parent.
func (g *Guard) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		select {
		case <-g.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return heldContext{ctx, g, cancel}, cancel
}

// fenced: nothing is sent with the token of a hold that is known to be lost.
func (g *Guard) fenced(call func() error) error {
	if err := g.Err(); err != nil {
		return err
	}
	err := call()
	for e, ours := err.(*Error); ours; e, ours = e.Cause.(*Error) {
		if e.Kind == ErrLost {
			g.lose(e)
		}
	}
	return err
}

// Put writes; the ETag of the new version.
func (g *Guard) Put(ctx context.Context, key string, body []byte, with ...Write) (etag string, err error) {
	err = g.fenced(func() error {
		etag, err = g.c.write(ctx, "PUT", key, g.FencingToken, body, with, 201, 204)
		return err
	})
	return etag, err
}

// Delete removes; ErrNotDone, "not-found", when there is none.
func (g *Guard) Delete(ctx context.Context, key string, with ...Write) error {
	return g.fenced(func() error {
		_, err := g.c.write(ctx, "DELETE", key, g.FencingToken, nil, with, 204)
		return err
	})
}

// Get reads; after it no older write lands.
func (g *Guard) Get(ctx context.Context, key string) (got *Resource, err error) {
	err = g.fenced(func() error {
		got, err = g.c.Get(ctx, key, g.FencingToken)
		return err
	})
	return got, err
}

// Transport adds the token to each request, and sends none when the hold is over. What the gateway refuses as stale is a loss. An
// access token goes to the gateway alone, as Pawl-Authorization, so that an Authorization of yours is the upstream's; not after a
// redirect. A gateway at unix:/path is http://gateway.localhost here, if base is nil. base: nil is one that keeps no connections, so that net/http sends nothing twice.
func (g *Guard) Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = g.c.http.Transport
	}
	return roundTripper{g, base}
}

type roundTripper struct {
	guard *Guard
	base  http.RoundTripper
}

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	token, err := "", r.guard.Err()
	if err == nil {
		token, err = r.guard.c.access()
	}
	if err != nil {
		if request.Body != nil {
			request.Body.Close()
		}
		return nil, err
	}
	fenced := request.Clone(request.Context())
	fenced.Header.Set("Fencing-Token", r.guard.FencingToken)
	if token != "" && request.Response == nil && strings.HasPrefix(request.URL.String(), r.guard.c.gateway+"/") {
		fenced.Header.Set("Pawl-Authorization", "Bearer "+token)
	}
	if _, local := r.guard.c.sockets[fenced.URL.Host]; local && (fenced.Host == "" || fenced.Host == fenced.URL.Host) {
		fenced.Host = "localhost"
	}
	response, err := r.base.RoundTrip(fenced)
	if err == nil {
		status := response.Header.Get("Fencing-Status")
		for _, reason := range []string{"stale-token", "lease-expired"} {
			if strings.HasPrefix(status, "pawl; verdict=refused; reason="+reason+";") {
				r.guard.lose(&Error{Kind: ErrLost, Code: reason, Detail: "a write was refused: " + status, Status: response.StatusCode})
			}
		}
	}
	return response, err
}

// Session is one keep-alive for many leases: what is locked with it lives as long as it does.
type Session struct {
	kept
	ID     string
	secret string
	guards sync.Map // *Guard -> nil
}

// OpenSession opens one that keeps itself alive; of the options TTL, Holder and Meta count. Asked for once: one whose answer was
// lost holds nothing, and ends by its TTL.
func (c *Client) OpenSession(ctx context.Context, options Options) (*Session, error) {
	body, err := options.ask()
	if err != nil {
		return nil, err
	}
	delete(body, "lease_id")
	text, err := json.Marshal(body)
	if err != nil {
		return nil, mistake("%v", err)
	}
	a, err := c.send(ctx, "POST", c.lease+"/v1/sessions", headers("Content-Type", "application/json"), text, c.timeout)
	if err == nil {
		err = problemOf(a, 201)
	}
	got := &told{}
	if err == nil && (json.Unmarshal(a.body, got) != nil || !got.times(a) || !sessionPattern.MatchString(got.Session) || !leaseIDPattern.MatchString(got.SessionSecret)) {
		err = foreign(a.status, "no session")
	}
	if err != nil {
		return nil, err
	}
	s := &Session{ID: got.Session, secret: got.SessionSecret}
	s.kept.renew = s.ask
	s.init(c, "session "+s.ID, nil, got)
	go func() {
		s.keep()
		s.guards.Range(func(g, _ any) bool { return g.(*Guard).Err() != nil }) // looks, and closes its channel
	}()
	return s, nil
}

func (s *Session) ask(ctx context.Context, _, limit time.Duration) (*told, error) {
	a, err := s.c.send(ctx, "PUT", s.c.lease+"/v1/sessions/"+s.ID, headers("Session-Secret", s.secret), nil, limit)
	if err == nil {
		err = problemOf(a, 200)
	}
	got := &told{}
	if err == nil && (json.Unmarshal(a.body, got) != nil || !got.times(a) || got.Session != s.ID || got.LostNames == nil) {
		err = foreign(a.status, "not about this session")
	}
	if err != nil {
		return nil, err
	}
	// Which of our holds of that name it was, and whether it was acquired anew meanwhile, a renewal of its own tells.
	for _, name := range *got.LostNames {
		s.guards.Range(func(g, _ any) bool {
			if one := g.(*Guard); one.Name == name {
				go func() { _ = one.renewOnce(context.Background(), 0) }()
			}
			return true
		})
	}
	return got, nil
}

// Lock is a lease that lives as long as the session; its TTL does not count.
func (s *Session) Lock(name string, options Options) *Lock { return &Lock{s.c, s, name, options} }

// AcquireAll: as that of Client.
func (s *Session) AcquireAll(ctx context.Context, names []string, options Options, wait time.Duration) ([]*Guard, error) {
	return s.c.acquire(ctx, s.c.lease+"/v1/leases", names, options, wait, s, true)
}

// Release ends the session, and with it all that it holds.
func (s *Session) Release(ctx context.Context) error {
	todo, lost := s.leave()
	if !todo {
		return nil
	}
	attempts := s.c.attempts
	if lost != nil {
		attempts = 1
	}
	err := s.c.settle(ctx, attempts, true, func() error {
		a, err := s.c.send(ctx, "DELETE", s.c.lease+"/v1/sessions/"+s.ID, headers("Session-Secret", s.secret), nil, s.c.timeout)
		if err == nil {
			err = problemOf(a, 204)
		}
		return err
	})
	if lost != nil {
		return lost
	}
	return err
}
