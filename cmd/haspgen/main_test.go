package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// module makes a module of some files that uses this checkout of hasp.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files["go.mod"] = "module example.com/shop\n\ngo 1.25.0\n\nrequire github.com/hasp-dev/hasp v0.0.0\n\n" +
		"replace github.com/hasp-dev/hasp => " + root + "\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// haspgen runs the command and answers its exit code and what it printed.
func haspgen(t *testing.T, dir string, args ...string) (int, string) {
	t.Helper()
	var stderr strings.Builder
	code := run(dir, args, &stderr)
	return code, stderr.String()
}

func TestMain(m *testing.M) {
	os.Setenv("GOWORK", "off") // the modules of the tests are none of the workspace
	os.Exit(m.Run())
}

func TestDecoratorsAreAsExpectedCompileAndLock(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"shop", "ten"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := module(t, map[string]string{name + ".go": read(t, "testdata/"+name+"/"+name+".go")})
			if code, said := haspgen(t, dir); code != exitOK || said != "" {
				t.Fatalf("exit code %d: %s", code, said)
			}
			golden := "testdata/" + name + "/hasp_locked.go.golden"
			got := read(t, filepath.Join(dir, output))
			if os.Getenv("HASP_UPDATE_GOLDEN") == "1" {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got != read(t, golden) {
				t.Errorf("%s is not what is generated; HASP_UPDATE_GOLDEN=1 go test writes it", golden)
			}
			write(t, dir, map[string]string{name + "_test.go": read(t, "testdata/"+name+"/"+name+"_test.go.txt")})
			for _, args := range [][]string{{"vet", "."}, {"test", "."}} {
				cmd := exec.CommandContext(t.Context(), "go", args...)
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
				}
			}
		})
	}
}

func TestWhatIsUpToDateIsLeftAloneAndWhatIsNotIsReplaced(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"shop.go": read(t, "testdata/shop/shop.go")})
	if code, said := haspgen(t, dir, "-check", "./..."); code != exitStale || !strings.Contains(said, "out of date") {
		t.Errorf("before: %d %s", code, said)
	}
	if _, err := os.Stat(filepath.Join(dir, output)); err == nil {
		t.Error("-check has written")
	}
	haspgen(t, dir)
	before, err := os.Stat(filepath.Join(dir, output))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"."}, {"-check"}, {"example.com/shop"}} {
		if code, said := haspgen(t, dir, args...); code != exitOK || said != "" {
			t.Errorf("%q: %d %s", args, code, said)
		}
	}
	if after, err := os.Stat(filepath.Join(dir, output)); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("it was written again: %v", err)
	}
	// What was generated no longer fits, and is used: it is replaced all the same.
	source := strings.ReplaceAll(read(t, "testdata/shop/shop.go"), "order *Order) error\n\n\tPing()", "order *Order) (int, error)\n\n\tPing()")
	source += "\nvar _ = NewLockedOrders\n"
	if err := os.WriteFile(filepath.Join(dir, "shop.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := haspgen(t, dir); code != exitOK || said != "" {
		t.Errorf("after a change: %d %s", code, said)
	}
	if !strings.Contains(read(t, filepath.Join(dir, output)), ") (r0 int, err error)") {
		t.Error("the change was not seen")
	}
	if err := os.WriteFile(filepath.Join(dir, "shop.go"), []byte("package shop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	haspgen(t, dir)
	if _, err := os.Stat(filepath.Join(dir, output)); err == nil {
		t.Error("without directives the file is still there")
	}
}

func TestAForeignFileIsNotOverwritten(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{"shop.go": read(t, "testdata/shop/shop.go"), output: "package shop\n"})
	if code, said := haspgen(t, dir); code != exitWrong || !strings.Contains(said, "rename it") {
		t.Errorf("%d %s", code, said)
	}
}

func TestMistakesAreSaidWithTheirPlace(t *testing.T) {
	t.Parallel()
	const head = "package shop\n\nimport \"context\"\n\ntype Order struct{ ID int; F float64; At, T []float32; Tags []string }\n\ntype Orders interface {\n"
	for says, method := range map[string]string{
		"8:13: {order.Nr}: order, a *example.com/shop.Order, has no field Nr": "//hasp:lock key=\"o:{order.Nr}\"\nPay(ctx context.Context, order *Order) error",
		"8:13: {x}: Pay has no parameter x; there is order":                   "//hasp:lock key=\"o:{x}\"\nPay(ctx context.Context, order *Order) error",
		"8:13: {order.F}: a float64 cannot stand in a key":                    "//hasp:lock key=\"o:{order.F}\"\nPay(ctx context.Context, order *Order) error",
		"8:13: {order}: a *example.com/shop.Order cannot":                     "//hasp:lock key=\"o:{order}\"\nPay(ctx context.Context, order *Order) error",
		"8:13: {t}: its type does not compile":                                "//hasp:lock key=\"o:{t}\"\nPay(ctx context.Context, t Missing) error",
		"8:13: key template \"o:{\", column 3":                                "//hasp:lock key=\"o:{\"\nPay(ctx context.Context) error",
		"both have several values":                                            "//hasp:lock key=\"o:{a}:{b}\"\nPay(ctx context.Context, a, b []string) error",
		"8:21: unknown attribute \"wait\"":                                    "//hasp:lock key=\"o\" wait=5s\nPay(ctx context.Context) error",
		"8:1: no key":                                                         "//hasp:lock timeout=5s\nPay(ctx context.Context) error",
		"8:21: expiration=50: at least 100ms":                                 "//hasp:lock key=\"o\" expiration=50\nPay(ctx context.Context) error",
		"8:21: timeout=soon":                                                  "//hasp:lock key=\"o\" timeout=soon\nPay(ctx context.Context) error",
		"8:21: timeout=${X":                                                   "//hasp:lock key=\"o\" timeout=${X\nPay(ctx context.Context) error",
		"8:21: client=a-b: it is no Go identifier":                            "//hasp:lock key=\"o\" client=a-b\nPay(ctx context.Context) error",
		"client=next":                                   "//hasp:lock key=\"o\" client=next\nPay(ctx context.Context) error",
		"8:21: manual=maybe":                            "//hasp:lock key=\"o\" manual=maybe\nPay(ctx context.Context) error",
		"8:30: store is given twice":                    "//hasp:lock key=\"o\" store=a  store=b\nPay(ctx context.Context) error",
		"the string is not closed":                      "//hasp:lock key=\"o\nPay(ctx context.Context) error",
		"a second //hasp:lock":                          "//hasp:lock key=a\n//hasp:lock key=b\nPay(ctx context.Context) error",
		"unknown directive //hasp:locked":               "//hasp:locked key=a\nPay(ctx context.Context) error",
		"its first parameter must be a context.Context": "//hasp:lock key=a\nPay(order *Order) error",
		"its last result must be an error":              "//hasp:lock key=a\nPay(ctx context.Context) int",
		"a shared lock has one key, here are 2":         "//hasp:lock key=a key=b shared\nPay(ctx context.Context) error",
		"a shared lock has one key, but":                "//hasp:lock key={order.Tags} shared\nPay(ctx context.Context, order *Order) error",
		"an embedded interface cannot be locked":        "//hasp:lock key=a\nerror",
	} {
		dir := module(t, map[string]string{"shop.go": head + method + "\n}\n"})
		code, said := haspgen(t, dir)
		if code != exitWrong || !strings.Contains(strings.ReplaceAll(said, dir+"/", ""), says) {
			t.Errorf("%d %s\nwant %s", code, said, says)
		}
	}
}

func TestADirectiveThatWouldDoNothingIsAMistake(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"//hasp:lock key=a\nfunc pay() {}\n",
		"//hasp:lock key=a\ntype Orders interface{ Pay() }\n",
		"type Orders interface{\n\t//hasp:lock key=a\n}\n",
	} {
		dir := module(t, map[string]string{"shop.go": "package shop\n\n" + text})
		if code, said := haspgen(t, dir); code != exitWrong || !strings.Contains(said, "above no method") {
			t.Errorf("%q: %d %s", text, code, said)
		}
	}
}
