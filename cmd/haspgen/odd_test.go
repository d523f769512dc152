package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestOddNamesCompile(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"shop.go": `package shop

import "context"

type Order struct{ ID int }

type Base[T any] interface {
	Get(ctx context.Context, id T) (T, error)
}

type orders[K comparable, errors any] interface {
	Base[K]
	//hasp:lock key="a:{string}:{strconv}"
	Pay(context context.Context, string string, strconv int, hasp *Order, nil bool) error
	//hasp:lock key="b:{len}:{keytmpl.ID}" client=hasp
	Many(_ context.Context, v, len []string, append, true int, keytmpl Order) (r0, r1 int, _ error)
	//hasp:lock key="c"
	Blank(context.Context, int, string) error
	//hasp:lock key="d:{p1}" client=context
	Mixed(ctx context.Context, _ int, p1, r0 int, error, byte errors) (int, error)
	//hasp:lock key="e"
	next(error context.Context) error
	Nothing(context, func_ int, l ...int) int
}
`})
	compiles(t, dir)
}

func compiles(t *testing.T, dir string) {
	t.Helper()
	if code, said := haspgen(t, dir); code != exitOK || said != "" {
		t.Fatalf("exit code %d: %s", code, said)
	}
	cmd := exec.CommandContext(t.Context(), "go", "vet", ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, read(t, filepath.Join(dir, output)))
	}
}

func TestNamesOfThePackageThatGeneratedCodeNeeds(t *testing.T) {
	t.Parallel()
	const head = "package shop\n\nimport \"context\"\n\ntype Orders interface {\n\t//hasp:lock key=a\n\tPay(ctx context.Context) error\n}\n\n"
	for text, says := range map[string]string{
		"type LockedOrders int\n": "LockedOrders",
		"var errors = 1\n":        "errors",
		"func newHaspLock() {}\n": "newHaspLock",
	} {
		dir := module(t, map[string]string{"shop.go": head + text})
		if code, said := haspgen(t, dir); code != exitWrong || !strings.Contains(said, "10:") || !strings.Contains(said, says+" is declared here") {
			t.Errorf("%q: %d %s", text, code, said)
		}
	}
}

func TestTheDirectiveOfAnEmbeddedMethodCounts(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"shop.go": `package shop

import "context"

type Payer[T any] interface {
	//hasp:lock key="pay:{id}"
	Pay(ctx context.Context, id string, what T) error
}

type Orders interface {
	Payer[int]
	//hasp:lock key="ship:{id}"
	Ship(ctx context.Context, id string) error
}
`})
	compiles(t, dir)
	if text := read(t, filepath.Join(dir, output)); !strings.Contains(text, "func (l *LockedOrders) keysOfPay(id string, what int)") {
		t.Error(text)
	}
}

func TestMoreMistakes(t *testing.T) {
	t.Parallel()
	const head = "package shop\n\nimport (\n\"context\"\n\"time\"\n)\n\ntype Stamp struct{ time.Time }\n\ntype Orders interface {\n"
	for says, method := range map[string]string{
		"11:1: write //hasp:lock without a space":  "// hasp:lock key=a\nPay(ctx context.Context) error",
		"Count has a type that does not compile":   "//hasp:lock key=a\nPay(ctx context.Context) error\nCount(Missing) int",
		"a time.Time has many texts":               "//hasp:lock key=a:{at}\nPay(ctx context.Context, at Stamp) error",
		"11:21: expiration=${X:0}: at least 100ms": "//hasp:lock key=\"o\" expiration=${X:0}\nPay(ctx context.Context) error",
		"11:21: expiration=0: at least 100ms":      "//hasp:lock key=\"o\" expiration=0\nPay(ctx context.Context) error",
		"11:21: timeout=${X:soon}":                 "//hasp:lock key=\"o\" timeout=${X:soon}\nPay(ctx context.Context) error",
		"11:21: retry=0: at least 1ms":             "//hasp:lock key=\"o\" retry=0\nPay(ctx context.Context) error",
		"client=_":                                 "//hasp:lock key=a client=_\nPay(ctx context.Context) error",
	} {
		dir := module(t, map[string]string{"shop.go": head + method + "\n}\n"})
		if code, said := haspgen(t, dir); code != exitWrong || !strings.Contains(said, says) {
			t.Errorf("%d %s\nwant %s", code, said, says)
		}
	}
}

func TestADirectiveInATestFileIsAMistake(t *testing.T) {
	t.Parallel()
	const text = "package shop\n\nimport \"context\"\n\ntype Orders interface {\n\t//hasp:lock key=a\n\tPay(ctx context.Context) error\n}\n"
	dir := module(t, map[string]string{"shop.go": "package shop\n", "shop_test.go": text})
	if code, said := haspgen(t, dir); code != exitWrong || !strings.Contains(said, "shop_test.go:6:2") {
		t.Errorf("%d %s", code, said)
	}
	const quoted = "package shop\n\nconst text = `\n//hasp:lock key=a\n`\n"
	dir = module(t, map[string]string{"shop.go": "package shop\n", "shop_test.go": quoted})
	if code, said := haspgen(t, dir); code != exitOK {
		t.Errorf("%d %s", code, said)
	}
}

// write writes files into a folder, making further folders for them.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheDirectiveOfAMethodOfAnotherPackageCounts(t *testing.T) {
	t.Parallel()
	const base = `package pay

import "context"

type Bill struct{ Nr int; secret int }

type Payer[T any] interface {
	//hasp:lock key="pay:{bill.Nr}" timeout=1s
	Pay(ctx context.Context, bill *Bill, what T) error
	Ping()
}
`
	dir := module(t, map[string]string{"shop.go": `package shop

import (
	"context"
	"io"

	"example.com/shop/pay"
)

type Orders interface {
	io.Closer
	pay.Payer[int]
	//hasp:lock key="ship:{id}"
	Ship(ctx context.Context, id string) error
}
`})
	write(t, dir, map[string]string{"pay/pay.go": base})
	compiles(t, dir)
	text := read(t, filepath.Join(dir, output))
	for _, want := range []string{`keysOfPay(bill *pay.Bill, what int)`, `timeout: "1s"`, "Ping calls next, without a lock", "Close calls next, without a lock"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for says, source := range map[string]string{
		"pay/pay.go:8:14: {bill.secret}: bill, a *example.com/shop/pay.Bill, has no field secret": strings.Replace(base, "{bill.Nr}", "{bill.secret}", 1),
		"pay/pay.go:8:34: unknown attribute":                                                      strings.Replace(base, "timeout=1s", "wait=1s", 1),
		"write //hasp:lock without a space":                                                       strings.Replace(base, "//hasp", "// hasp", 1),
	} {
		write(t, dir, map[string]string{"pay/pay.go": source})
		if code, said := haspgen(t, dir); code != exitWrong || !strings.Contains(said, says) {
			t.Errorf("%d %s\nwant %s", code, said, says)
		}
	}
}

// A key must not go on without a value, nor take another one, when its field has another
// name: neither the old code compiles nor is there new code.
func TestRenamingAFieldOfAKeyBreaksTheBuildAndTheGeneration(t *testing.T) {
	t.Parallel()
	const source = `package shop

import "context"

type Order struct{ ID, Number int }

type Orders interface {
	//hasp:lock key="order:{order.ID}"
	Pay(ctx context.Context, order *Order) error
}
`
	dir := module(t, map[string]string{"shop.go": source})
	compiles(t, dir)
	before := read(t, filepath.Join(dir, output))
	write(t, dir, map[string]string{"shop.go": strings.Replace(source, "ID, Number", "OrderID, Number", 1)})
	cmd := exec.CommandContext(t.Context(), "go", "build", ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "order.ID undefined") {
		t.Errorf("the code that was generated before: %v\n%s", err, out)
	}
	for _, args := range [][]string{{}, {"-check"}} {
		code, said := haspgen(t, dir, args...)
		if code != exitWrong || !strings.Contains(said, "shop.go:8:14: {order.ID}: order, a *example.com/shop.Order, has no field ID") {
			t.Errorf("%q: %d %s", args, code, said)
		}
	}
	if read(t, filepath.Join(dir, output)) != before {
		t.Error("the file was written all the same")
	}
}
