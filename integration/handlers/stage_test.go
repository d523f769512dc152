package handlers_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/hasphttp"
	"github.com/hasp-dev/hasp/integration/servers"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	os.Exit(m.Run())
}

// crowd is how many requests come at once.
const crowd = 50

// soon bounds what should take no time at all, on a machine that does much else.
const soon = time.Minute

// lock is what a framework needs to run a handler under a lock.
type lock struct {
	client *hasp.Client
	key    hasphttp.KeyFunc
	opts   *hasphttp.Options
}

// frameworks are servers that answer POST /orders/{id} by work, under the lock.
func frameworks() map[string]func(l lock, work http.HandlerFunc) http.Handler {
	return map[string]func(lock, http.HandlerFunc) http.Handler{
		"net/http": withServeMux, "chi": withChi, "gin": withGin, "echo": withEcho,
	}
}

func withServeMux(l lock, work http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}", hasphttp.Middleware(l.client, l.key, l.opts)(work))
	return mux
}

func withChi(l lock, work http.HandlerFunc) http.Handler {
	router := chi.NewRouter()
	router.With(hasphttp.Middleware(l.client, l.key, l.opts)).Post("/orders/{id}", work)
	return router
}

// withGin tells the request the values of gin's path, which only gin knows.
func withGin(l lock, work http.HandlerFunc) http.Handler {
	engine := gin.New()
	engine.UseRawPath = true // or it has no route for an id with a slash in it
	engine.POST("/orders/:id", func(c *gin.Context) {
		for _, p := range c.Params {
			c.Request.SetPathValue(p.Key, p.Value)
		}
		r, end, ok := hasphttp.Begin(c.Writer, c.Request, l.client, l.key, l.opts)
		defer end()
		if !ok {
			c.Abort()
			return
		}
		c.Request = r
		c.Next()
	}, func(c *gin.Context) { work(c.Writer, c.Request) })
	return engine
}

// withEcho does the same for echo.
func withEcho(l lock, work http.HandlerFunc) http.Handler {
	e := echo.New()
	e.POST("/orders/:id", echo.WrapHandler(work), func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			for _, name := range c.ParamNames() {
				c.Request().SetPathValue(name, c.Param(name))
			}
			r, end, ok := hasphttp.Begin(c.Response(), c.Request(), l.client, l.key, l.opts)
			defer end()
			if !ok {
				return nil
			}
			c.SetRequest(r)
			return next(c)
		}
	})
	return e
}

// startRedis starts a server of the test's own, and a client on it.
func startRedis(t *testing.T) (*servers.Redis, *hasp.Client) {
	t.Helper()
	server, err := servers.StartRedis(servers.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	client, err := hasp.New(redislease.New(rdb, nil), &hasp.Options{
		Lock: hasp.LockOptions{LocalHandoffs: -1}, // each request stands in the line that the tests look at
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), soon)
		defer cancel()
		_ = client.Close(ctx) // the server may have been killed
		_ = rdb.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server, client
}

// eachFramework runs a check on each framework, over one store.
func eachFramework(t *testing.T, check func(t *testing.T, client *hasp.Client, serve func(*hasphttp.Options, http.HandlerFunc) string)) {
	t.Helper()
	t.Parallel()
	for name, framework := range frameworks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, client := startRedis(t)
			check(t, client, func(o *hasphttp.Options, work http.HandlerFunc) string {
				return serve(t, framework, lock{client: client, opts: o}, work)
			})
		})
	}
}

// serve starts a server and answers its URL.
func serve(t *testing.T, framework func(lock, http.HandlerFunc) http.Handler, l lock, work http.HandlerFunc) string {
	t.Helper()
	var err error
	if l.key, err = hasphttp.Key("order:{id}"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(framework(l, work))
	t.Cleanup(server.Close)
	return server.URL
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in %s: %s", soon, what)
		}
	}
}
