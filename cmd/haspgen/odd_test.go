package main

import (
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
		"11:1: write //hasp:lock without a space": "// hasp:lock key=a\nPay(ctx context.Context) error",
		"Count has a type that does not compile":  "//hasp:lock key=a\nPay(ctx context.Context) error\nCount(Missing) int",
		"a time.Time has many texts":              "//hasp:lock key=a:{at}\nPay(ctx context.Context, at Stamp) error",
		"client=_":                                "//hasp:lock key=a client=_\nPay(ctx context.Context) error",
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
