package handlers_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/hasphttp"
)

const heldBody = `{"success":false,"message":"Lock not acquired"}`

// answer is one that has been read.
type answer struct {
	status int
	body   string
}

func post(ctx context.Context, url string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, string(body)}, err
}

// together sends that many requests at once and tells of each answer.
func together(t *testing.T, url string, told func(answer)) {
	t.Helper()
	var all sync.WaitGroup
	for range crowd {
		all.Go(func() {
			got, err := post(t.Context(), url)
			if err != nil {
				t.Error(err)
			}
			told(got)
		})
	}
	all.Wait()
}

func TestOfFiftyRequestsOneIsAnsweredAndTheOthersAreConflicts(t *testing.T) {
	eachFramework(t, func(t *testing.T, _ *hasp.Client, serve func(*hasphttp.Options, http.HandlerFunc) string) {
		var done, held, refused atomic.Int64
		last := make(chan struct{})
		url := serve(nil, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-last: // all others have their answers
			case <-r.Context().Done():
			}
			fmt.Fprint(w, "paid")
		})
		together(t, url+"/orders/42", func(got answer) {
			if got.status != http.StatusOK && refused.Add(1) == crowd-1 {
				close(last)
			}
			switch got {
			case answer{http.StatusOK, "paid"}:
				done.Add(1)
			case answer{http.StatusConflict, heldBody}:
				held.Add(1)
			default:
				t.Errorf("answered %+v", got)
			}
		})
		if done.Load() != 1 || held.Load() != crowd-1 {
			t.Errorf("%d succeeded and %d were conflicts", done.Load(), held.Load())
		}
	})
}

func TestFiftyRequestsThatWaitAreAnsweredOneAfterTheOther(t *testing.T) {
	eachFramework(t, func(t *testing.T, _ *hasp.Client, serve func(*hasphttp.Options, http.HandlerFunc) string) {
		var inside, done atomic.Int64
		tokens := make(chan int64, crowd)
		url := serve(&hasphttp.Options{Wait: time.Minute}, func(w http.ResponseWriter, r *http.Request) {
			if inside.Add(1) != 1 {
				t.Error("two at once")
			}
			defer inside.Add(-1)
			lease, ok := hasp.FromContext(r.Context(), "order:42")
			if !ok {
				t.Error("the request carries no lease")
				return
			}
			tokens <- lease.Token()
			fmt.Fprint(w, "paid")
		})
		together(t, url+"/orders/42", func(got answer) {
			if got != (answer{http.StatusOK, "paid"}) {
				t.Errorf("answered %+v", got)
				return
			}
			done.Add(1)
		})
		close(tokens)
		before := int64(0)
		for token := range tokens {
			if token <= before {
				t.Errorf("token %d after %d", token, before)
			}
			before = token
		}
		if done.Load() != crowd {
			t.Errorf("%d of %d succeeded", done.Load(), crowd)
		}
	})
}

func TestRequestsForTwoIDsRunSideBySide(t *testing.T) {
	eachFramework(t, func(t *testing.T, _ *hasp.Client, serve func(*hasphttp.Options, http.HandlerFunc) string) {
		var inside sync.WaitGroup
		inside.Add(2)
		url := serve(nil, func(w http.ResponseWriter, _ *http.Request) {
			inside.Done()
			inside.Wait() // neither ends before the other has begun
			fmt.Fprint(w, "paid")
		})
		var both sync.WaitGroup
		for _, id := range []string{"1", "2"} {
			both.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), soon)
				defer cancel()
				if got, err := post(ctx, url+"/orders/"+id); err != nil || got.status != http.StatusOK {
					t.Errorf("order %s: %+v, %v", id, got, err)
				}
			})
		}
		both.Wait()
	})
}

// A claim that waits lives 6 s without a renewal, so a line that is empty sooner was left.
func TestAClientThatHangsUpIsOutOfTheLine(t *testing.T) {
	eachFramework(t, func(t *testing.T, client *hasp.Client, serve func(*hasphttp.Options, http.HandlerFunc) string) {
		url := serve(&hasphttp.Options{Wait: time.Minute}, func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
		lease, err := client.Mutex("order:42").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer lease.Release(t.Context())
		waiting := func(n int) {
			t.Helper()
			eventually(t, fmt.Sprintf("%d wait", n), func() bool {
				line, err := client.Inspect(t.Context(), "order:42")
				return err == nil && line.Waiting == n
			})
		}
		ctx, hangUp := context.WithCancel(t.Context())
		defer hangUp()
		ended := make(chan error, 1)
		go func() {
			_, err := post(ctx, url+"/orders/42")
			ended <- err
		}()
		waiting(1)
		gone := time.Now()
		hangUp()
		waiting(0)
		if took := time.Since(gone); took > 5*time.Second {
			t.Errorf("it took %s; 100 ms is the goal, on a machine that does nothing else", took)
		}
		if err := <-ended; err == nil {
			t.Error("it was answered")
		}
	})
}

func TestAStoreThatIsKilledIs503WithinTheBudgetOfTheRequest(t *testing.T) {
	t.Parallel()
	for name, framework := range frameworks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, client := startRedis(t)
			budget := func(l lock, work http.HandlerFunc) http.Handler {
				inner := framework(l, work)
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.RawQuery == "brief" {
						ctx, cancel := context.WithTimeout(r.Context(), 500*time.Millisecond)
						defer cancel()
						r = r.WithContext(ctx)
					}
					inner.ServeHTTP(w, r)
				})
			}
			var ran atomic.Int64
			url := serve(t, budget, lock{client: client}, func(http.ResponseWriter, *http.Request) { ran.Add(1) })
			if got, err := post(t.Context(), url+"/orders/1"); err != nil || got.status != http.StatusOK {
				t.Fatalf("%+v, %v", got, err)
			}
			server.Kill()
			answered := make(chan string, 2) // the one with a budget before the one that has hasp's five seconds
			for _, budget := range []string{"", "brief"} {
				go func() {
					got, err := post(t.Context(), url+"/orders/2"+budget+"?"+budget)
					if err != nil || got.status != http.StatusServiceUnavailable {
						t.Errorf("answered %+v, %v, want 503", got, err)
					}
					answered <- budget
				}()
			}
			if first, second := <-answered, <-answered; first != "brief" || second != "" {
				t.Error("the request with a budget of half a second waited for as long as one without")
			}
			if ran.Load() != 1 {
				t.Errorf("the handler ran %d times, want once, before", ran.Load())
			}
		})
	}
}
