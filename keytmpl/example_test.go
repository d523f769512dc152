package keytmpl_test

import (
	"fmt"

	"github.com/hasp-dev/hasp/keytmpl"
)

func Example() {
	order, err := keytmpl.Parse("order:{shop}:{orderId}")
	if err != nil {
		fmt.Println(err)
		return
	}
	values := map[string]string{"shop": "a:b", "orderId": "42"}
	key, err := order.Key(func(name string) (string, bool) {
		v, ok := values[name]
		return v, ok
	})
	fmt.Println(key, err)

	delete(values, "orderId")
	_, err = order.Key(func(name string) (string, bool) {
		v, ok := values[name]
		return v, ok
	})
	fmt.Println(err)
	// Output:
	// order:a%3Ab:42 <nil>
	// key template "order:{shop}:{orderId}": the value of {orderId} is missing
}

func ExampleParse() {
	_, err := keytmpl.Parse("order:{shop}{orderId}")
	fmt.Println(err)
	// Output:
	// key template "order:{shop}{orderId}", column 13: nothing separates this value from the one before it, so that different values could make one key; put a character such as ":" or "/" between them
}

func ExampleDuration() {
	none := func(string) (string, bool) { return "", false }
	fmt.Println(keytmpl.Duration("${LOCK_WAIT:100ms}", none))
	fmt.Println(keytmpl.Duration("250", none))
	fmt.Println(keytmpl.Duration("${LOCK_WAIT}", none))
	// Output:
	// 100ms <nil>
	// 250ms <nil>
	// 0s invalid: duration "${LOCK_WAIT}": ${LOCK_WAIT} is not set and has no default; write ${LOCK_WAIT:100ms} to give one
}
