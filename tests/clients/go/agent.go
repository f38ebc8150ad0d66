// agent.go - does with the package pawl what it is told, for tests/clients/scenarios.py.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"pawl"
)

type kept interface {
	Lost() <-chan struct{}
	Err() error
	Remaining() time.Duration
	Release(context.Context) error
}

type guards []*pawl.Guard

func (g guards) Release(ctx context.Context) (err error) {
	for _, one := range g {
		if released := one.Release(ctx); err == nil {
			err = released
		}
	}
	return err
}

var (
	ctx     = context.Background()
	holds   = map[string]kept{}
	several = map[string]guards{}
	mu      sync.Mutex
	lines   = bufio.NewScanner(os.Stdin)
	body    = errors.New("body")
)

func say(kind string, pairs ...string) {
	mu.Lock()
	defer mu.Unlock()
	for i := 0; i < len(pairs); i += 2 {
		kind += "\t" + pairs[i] + "=" + strings.ReplaceAll(pairs[i+1], "\n", " ")
	}
	os.Stdout.WriteString(kind + "\n")
}

func failed(err error) []string {
	var e *pawl.Error
	if errors.Is(err, pawl.ErrMistake) {
		return []string{"outcome", "mistake", "code", err.Error()}
	} else if !errors.As(err, &e) {
		return []string{"outcome", err.Error(), "code", ""}
	}
	kinds := []string{} // one, however it is asked for
	for kind, name := range map[error]string{pawl.ErrHeld: "held", pawl.ErrLost: "lost", pawl.ErrNotDone: "not-done", pawl.ErrUnknown: "unknown"} {
		if errors.Is(err, kind) {
			kinds = append(kinds, name)
		}
	}
	retryable := map[bool]string{true: "1", false: "0"}[e.Retryable]
	return []string{"outcome", strings.Join(kinds, " and "), "code", e.Code, "retryable", retryable, "holder", e.Holder, "ended", e.Ended}
}

func ms(text, usual string) time.Duration {
	if text == "" {
		text = usual
	}
	if text == "forever" {
		return pawl.Forever
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return time.Duration(number) * time.Millisecond
}

// keep tells its loss when it comes.
func keep(called string, one kept) {
	holds[called] = one
	go func() {
		<-one.Lost()
		say("!", "hold", called, "code", one.Err().(*pawl.Error).Code)
	}()
}

func left(one kept) string { return strconv.FormatInt(one.Remaining().Milliseconds(), 10) }

func acquire(client *pawl.Client, given map[string]string) ([]string, error) {
	options := pawl.Options{TTL: ms(given["ttl_ms"], "30000"), Holder: given["holder"], Mode: given["mode"], LeaseID: given["lease_id"]}
	wait, within := ms(given["wait_ms"], "0"), ctx
	if given["cancel_ms"] != "" {
		limited, cancel := context.WithTimeout(ctx, ms(given["cancel_ms"], ""))
		defer cancel()
		within = limited
	}
	if given["names"] != "" {
		all, err := client.AcquireAll(within, strings.Split(given["names"], " "), options, wait)
		tokens := []string{}
		for _, one := range all {
			tokens = append(tokens, strconv.FormatInt(one.Token, 10))
		}
		several[given["hold"]] = all
		return []string{"tokens", strings.Join(tokens, " ")}, err
	}
	lock := client.Lock(given["name"], options)
	if session, there := holds[given["session"]]; there {
		lock = session.(*pawl.Session).Lock(given["name"], options)
	}
	guard, err := lock.Acquire(within, wait)
	if err != nil {
		return nil, err
	}
	keep(given["hold"], guard)
	return []string{"token", strconv.FormatInt(guard.Token, 10), "fencing", guard.FencingToken, "remaining_ms", left(guard)}, nil
}

func inside(client *pawl.Client, given map[string]string) ([]string, error) {
	err := client.Lock(given["name"], pawl.Options{TTL: ms(given["ttl_ms"], "")}).Do(ctx, 0, func(within context.Context, guard *pawl.Guard) error {
		say("=", "outcome", "ok", "still", map[bool]string{true: "1", false: "0"}[within.Err() == nil && guard.Remaining() > 0])
		lines.Scan()
		if given["body"] == "badly" {
			return body
		}
		return nil
	})
	if err == body {
		return []string{"raised", "body"}, nil
	}
	return []string{"raised", "nothing"}, err
}

// request goes through a http.Client of a user's, with the token of the hold.
func request(guard *pawl.Guard, given map[string]string) ([]string, error) {
	client := http.Client{Transport: guard.Transport(nil)}
	made, err := http.NewRequest("PUT", given["url"], strings.NewReader(given["body"]))
	if err != nil {
		return nil, err
	}
	response, err := client.Do(made)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return []string{"status", strconv.Itoa(response.StatusCode)}, err
}

func do(client *pawl.Client, verb string, given map[string]string) ([]string, error) {
	called := given["hold"]
	guard, _ := holds[called].(*pawl.Guard)
	switch verb {
	case "acquire", "acquire_all":
		return acquire(client, given)
	case "session":
		session, err := client.OpenSession(ctx, pawl.Options{TTL: ms(given["ttl_ms"], "")})
		if err == nil {
			keep(called, session)
		}
		return nil, err
	case "events":
		go func() {
			err := client.Events(ctx, given["name"], given["since"], func(one pawl.Event) error {
				say("!", "hold", called, "code", one.Type)
				return nil
			})
			say("!", append(failed(err), "hold", called)...)
		}()
		return nil, nil
	case "inside":
		return inside(client, given)
	case "request":
		return request(guard, given)
	case "spin": // until it says that nothing is left: by then the loss must have been marked
		within, cancel := guard.Context(ctx)
		defer cancel()
		for guard.Remaining() > 0 {
		}
		select {
		case <-guard.Lost():
		default:
			return nil, errors.New("not marked as lost")
		}
		if within.Err() == nil {
			return nil, errors.New("its context has not ended")
		}
		return nil, nil
	case "remaining":
		return []string{"remaining_ms", left(holds[called])}, nil
	case "renew":
		return nil, guard.Renew(ctx, ms(given["ttl_ms"], "0"))
	case "check":
		return nil, holds[called].Err()
	case "release":
		if all, there := several[called]; there {
			return nil, all.Release(ctx)
		}
		return nil, holds[called].Release(ctx)
	case "put":
		etag, err := guard.Put(ctx, strings.Replace(given["key"], "NO-UTF-8", "\xff", 1), []byte(given["body"]), pawl.Write{IdempotencyKey: given["idempotency_key"]})
		return []string{"etag", etag}, err
	case "get":
		got, err := guard.Get(ctx, given["key"])
		if err != nil {
			return nil, err
		}
		return []string{"body", string(got.Body)}, nil
	case "delete":
		return nil, guard.Delete(ctx, given["key"])
	}
	return nil, fmt.Errorf("unknown verb %s", verb)
}

func main() {
	_, plaintext := os.LookupEnv("ALLOW_PLAINTEXT")
	client, wrong := pawl.New(pawl.Config{LeaseURL: os.Args[1], GatewayURL: os.Args[2], Timeout: ms(os.Args[3], ""), AllowPlaintext: plaintext})
	for lines.Scan() {
		verb, rest, _ := strings.Cut(lines.Text(), "\t")
		given := map[string]string{}
		for _, pair := range strings.Split(rest, "\t") {
			key, value, _ := strings.Cut(pair, "=")
			given[key] = value
		}
		told, err := []string(nil), wrong
		if err == nil {
			told, err = do(client, verb, given)
		}
		if err != nil {
			say("=", failed(err)...)
		} else {
			say("=", append([]string{"outcome", "ok"}, told...)...)
		}
	}
}
