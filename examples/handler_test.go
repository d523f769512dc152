package examples_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/hasphttp"
)

// No order is paid twice at once, whichever server the requests reach.
func Example_handler() {
	store := memlease.NewStore()
	client, stop := process(store, "server")
	defer stop()

	key, err := hasphttp.Key("order:{id}")
	if err != nil {
		fmt.Println(err)
		return
	}
	working, answered := make(chan struct{}), make(chan struct{})
	pay := func(w http.ResponseWriter, r *http.Request) {
		lease, _ := hasp.FromContext(r.Context(), "order:42")
		close(working)
		<-answered
		fmt.Fprint(w, "paid, under a token: ", lease.Token() > 0)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/pay", hasphttp.Middleware(client, key, nil)(http.HandlerFunc(pay)))

	post := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42/pay", http.NoBody))
		return w
	}
	first := make(chan *httptest.ResponseRecorder)
	go func() { first <- post() }()
	<-working
	second := post()
	close(answered)
	fmt.Println(second.Code, second.Body)
	w := <-first
	fmt.Println(w.Code, w.Body)
	// Output:
	// 409 {"success":false,"message":"Lock not acquired"}
	// 200 paid, under a token: true
}
