package hasphttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/hasphttp"
)

func Example() {
	client, err := hasp.New(memlease.NewStore().Driver(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(context.Background())

	key, err := hasphttp.Key("order:{orderId}")
	if err != nil {
		fmt.Println(err)
		return
	}
	pay := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease, _ := hasp.FromContext(r.Context(), "order:42")
		fmt.Fprintln(w, "paid under a token:", lease.Token() > 0)
	})
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{orderId}/pay", hasphttp.Middleware(client, key, nil)(pay))

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/orders/42/pay", http.NoBody))
	fmt.Print(answer.Code, " ", answer.Body)

	elsewhere, err := client.Mutex("order:42").Lock(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer elsewhere.Release(context.Background())
	answer = httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/orders/42/pay", http.NoBody))
	fmt.Print(answer.Code, " ", answer.Body)
	// Output:
	// 200 paid under a token: true
	// 409 {"success":false,"message":"Lock not acquired"}
}

// A framework with middleware of its own calls Begin in it.
func ExampleBegin() {
	client, err := hasp.New(memlease.NewStore().Driver(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(context.Background())
	key, err := hasphttp.Key("report:{query.name}")
	if err != nil {
		fmt.Println(err)
		return
	}

	middleware := func(w http.ResponseWriter, r *http.Request, next func(http.ResponseWriter, *http.Request)) {
		r, end, ok := hasphttp.Begin(w, r, client, key, nil)
		defer end()
		if ok {
			next(w, r)
		}
	}

	answer := httptest.NewRecorder()
	middleware(answer, httptest.NewRequest(http.MethodGet, "/?name=sales", http.NoBody), func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "the report")
	})
	fmt.Println(answer.Code, answer.Body)
	// Output:
	// 200 the report
}
