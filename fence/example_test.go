package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/fence"
)

func newClient() *hasp.Client {
	client, err := hasp.New(memlease.NewStore().Driver(), nil)
	if err != nil {
		log.Fatal(err)
	}
	return client
}

// A column of the row that is written keeps the token. Raise comes first; what follows in
// the transaction is written by the holder or not at all.
func ExampleColumn_Raise() {
	orders := fence.Column{Dialect: fence.PostgreSQL, Table: "orders", Key: []string{"id"}}

	pay := func(ctx context.Context, db *sql.DB, lease *hasp.Lease, order int64) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
		if err := orders.Raise(ctx, tx, lease, order); err != nil {
			return err // fence.ErrStale: somebody else has held the lock since
		}
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET paid = true WHERE id = $1", order); err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = pay
}

// A table of its own keeps the tokens where the data has no room for them.
func ExampleTable_Raise() {
	fences := fence.Table{Dialect: fence.MySQL} // once: fences.Migrate(ctx, db)

	nightly := func(ctx context.Context, db *sql.DB, client *hasp.Client, work func(*sql.Tx) error) error {
		return client.Mutex("nightly").Do(ctx, func(ctx context.Context) error {
			lease, _ := hasp.FromContext(ctx, "nightly")
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
			if err := fences.Raise(ctx, tx, lease); err != nil {
				return err
			}
			if err := work(tx); err != nil {
				return err
			}
			return tx.Commit()
		})
	}
	_ = nightly
}

// A server that is no database keeps the tokens in memory.
func ExampleGate_Do() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)
	var gate fence.Gate // where the valve is
	open := func(ctx context.Context, token int64) error {
		return gate.Do(ctx, "valve:7", token, func(context.Context) error {
			fmt.Println("the valve turns")
			return nil
		})
	}

	first, _ := client.Mutex("valve:7").Lock(ctx)
	_ = first.Release(ctx) // or it expires, while its holder is paused
	second, _ := client.Mutex("valve:7").Lock(ctx)
	defer second.Release(ctx)

	fmt.Println(open(ctx, second.Token()))
	fmt.Println(errors.Is(open(ctx, first.Token()), fence.ErrStale))
	// Output:
	// the valve turns
	// <nil>
	// true
}

// The token travels in a header, and the handler runs only for the latest holder.
func ExampleMiddleware() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)

	var gate fence.Gate
	order := func(r *http.Request) (string, error) { return "order:" + r.PathValue("id"), nil }
	mux := http.NewServeMux()
	mux.Handle("PUT /orders/{id}", fence.Middleware(&gate, order)(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "written") })))
	server := httptest.NewServer(mux)
	defer server.Close()

	put := func(lease *hasp.Lease) (int, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL+"/orders/42", nil)
		if err != nil {
			return 0, err
		}
		if err := fence.SetHeader(r.Header, lease); err != nil {
			return 0, err // the lease is lost, or shared
		}
		response, err := server.Client().Do(r)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	lease, _ := client.Mutex("order:42").Lock(ctx)
	defer lease.Release(ctx)
	fmt.Println(put(lease))
	_ = gate.Admit("order:42", lease.Token()+64) // a later holder was here
	fmt.Println(put(lease))
	// Output:
	// 200 <nil>
	// 412 <nil>
}
