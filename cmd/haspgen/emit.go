package main

import (
	"bytes"
	"fmt"
	"go/format"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// packagesNeeded are the names of the packages that generated code always may use.
//
//nolint:gochecknoglobals // a constant
var packagesNeeded = []string{"context", "errors", "fmt", "slices", "strconv", "hasp", "keytmpl"}

// Import paths that generated code has besides those of the interface's types.
const (
	haspPath    = "github.com/hasp-dev/hasp"
	keytmplPath = "github.com/hasp-dev/hasp/keytmpl"
)

// file is a generated file.
type file struct {
	pkg     *packages.Package
	body    bytes.Buffer
	imports map[string]string // path to name
}

// generate writes the file of a package.
func generate(p *packages.Package, all []*target) ([]byte, error) {
	if err := freeNames(p, all); err != nil {
		return nil, err
	}
	f := &file{pkg: p, imports: make(map[string]string)}
	for _, path := range []string{"context", "errors", "fmt", "slices", "strconv"} {
		f.imports[path] = path
	}
	f.imports[haspPath], f.imports[keytmplPath] = "hasp", "keytmpl"
	for _, t := range all {
		f.decorator(t)
	}
	f.printf("%s", support)
	if slices.ContainsFunc(all, (*target).manual) {
		f.printf("%s", supportManual)
	}

	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\npackage %s\n\nimport (\n", header, p.Name)
	for _, standard := range []bool{true, false} {
		out.WriteString("\n") // between the groups
		for _, path := range slices.Sorted(maps.Keys(f.imports)) {
			name := f.imports[path]
			first, _, _ := strings.Cut(path, "/")
			if strings.Contains(first, ".") == standard || !bytes.Contains(f.body.Bytes(), []byte(name+".")) {
				continue
			}
			if name == path[strings.LastIndexByte(path, '/')+1:] {
				name = ""
			}
			fmt.Fprintf(&out, "\t%s %q\n", name, path)
		}
	}
	out.WriteString(")\n")
	out.Write(f.body.Bytes())
	text, err := format.Source(out.Bytes())
	if err != nil {
		return nil, faultf(position(p), "the generated code is not Go, which is a fault of haspgen: %v", err)
	}
	return text, nil
}

// freeNames says which name of the generated code the package has already.
func freeNames(p *packages.Package, all []*target) error {
	needed := append([]string{"haspLock", "haspTimes", "newHaspLock"}, packagesNeeded...)
	for _, t := range all {
		needed = append(needed, "Locked"+t.name, "NewLocked"+t.name)
	}
	for _, name := range needed {
		if other := p.Types.Scope().Lookup(name); other != nil {
			return faultf(p.Fset.Position(other.Pos()), "%s is declared here, a name that the generated code needs: rename it", name)
		}
	}
	return nil
}

func (f *file) printf(format string, args ...any) { fmt.Fprintf(&f.body, format, args...) }

// typeText writes a type as this file sees it.
func (f *file) typeText(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == f.pkg.Types {
			return ""
		}
		if name, ok := f.imports[p.Path()]; ok {
			return name
		}
		name := p.Name()
		for n := 2; slices.Contains(slices.Collect(maps.Values(f.imports)), name) || f.pkg.Types.Scope().Lookup(name) != nil; n++ {
			name = p.Name() + strconv.Itoa(n)
		}
		f.imports[p.Path()] = name
		return name
	})
}

// decorator writes the type, its constructor and its methods.
func (f *file) decorator(t *target) {
	name, declared, used := "Locked"+t.name, f.typeParams(t), typeArgs(t)
	f.printf("\n// %s is %s whose methods run under locks.\ntype %s%s struct {\n\t%s %s%s\n", name, article(t.name), name, declared, t.nextField(), t.name, used)
	for _, m := range t.locked() {
		f.printf("\t%s haspLock\n", lockField(m))
	}
	f.printf("}\n\n// NewLocked%s makes a %s that calls next.", t.name, name)
	f.printf(" What is wrong with a duration taken from the\n// environment, or with a client, comes back from the first call.\n")
	f.printf("func NewLocked%s%s(next %s%s", t.name, declared, t.name, used)
	for _, client := range t.clients() {
		f.printf(", %s *hasp.Client", clientName(client))
	}
	f.printf(") *%s%s {\n\treturn &%s%s{\n\t\t%s: next,\n", name, used, name, used, t.nextField())
	for _, m := range t.locked() {
		d := m.lock
		f.printf("\t\t%s: newHaspLock(%s, %q, haspTimes{expiration: %q, timeout: %q, retry: %q, refresh: %q}", lockField(m),
			clientName(d.client), fullPrefix(d), d.expiration, d.timeout, d.retry, d.refresh)
		for _, k := range m.keys {
			f.printf(", %q", k.template)
		}
		f.printf("),\n")
	}
	f.printf("\t}\n}\n")
	for _, m := range t.methods {
		if m.lock == nil {
			f.forward(t, m)
		} else {
			f.lockedMethod(t, m)
		}
	}
}

func (t *target) locked() []*method {
	return slices.DeleteFunc(slices.Clone(t.methods), func(m *method) bool { return m.lock == nil })
}

func (t *target) manual() bool {
	return slices.ContainsFunc(t.methods, func(m *method) bool { return m.lock != nil && m.lock.manual })
}

func article(name string) string {
	if strings.ContainsAny(name[:1], "AEIOU") {
		return "an " + name
	}
	return "a " + name
}

func lockField(m *method) string { return "lockOf" + m.name }

func clientName(name string) string {
	if name == "" {
		return "client"
	}
	return name
}

// fullPrefix is what is put before a method's keys.
func fullPrefix(d *directive) string {
	if d.store == "" {
		return d.prefix
	}
	return d.store + ":" + d.prefix
}

// typeParams writes the declaration of an interface's type parameters.
func (f *file) typeParams(t *target) string {
	if t.params.Len() == 0 {
		return ""
	}
	var all []string
	for p := range t.params.TypeParams() {
		all = append(all, p.Obj().Name()+" "+f.typeText(p.Constraint()))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func typeArgs(t *target) string {
	if t.params.Len() == 0 {
		return ""
	}
	var all []string
	for p := range t.params.TypeParams() {
		all = append(all, p.Obj().Name())
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// nextField is the name of the field with the decorated value.
func (t *target) nextField() string {
	var methods []string
	for _, m := range t.methods {
		methods = append(methods, m.name)
	}
	return free("next", methods)
}

// names are the names that a method's code uses besides its parameters'.
type names struct{ self, err, keys, many, one, name string }

// namesFor finds names that none of the method's parameters has.
func namesFor(m *method) names {
	taken := slices.Concat(m.params, m.results)
	return names{
		self: free("l", taken), err: free("err", taken), keys: free("keys", taken),
		many: free("many", taken), one: free("one", taken), name: free("name", taken),
	}
}

// signature writes a method's name, parameters and results. A locked method's results
// are named.
func (f *file) signature(t *target, m *method, n names) {
	f.printf("func (%s *Locked%s%s) %s(", n.self, t.name, typeArgs(t), m.name)
	for i, name := range m.params {
		param := m.sig.Params().At(i).Type()
		text := f.typeText(param)
		if slice, ok := param.(*types.Slice); ok && m.sig.Variadic() && i == len(m.params)-1 {
			text = "..." + f.typeText(slice.Elem())
		}
		f.printf("%s %s, ", name, text)
	}
	f.printf(") (")
	for i := range m.sig.Results().Len() {
		result := f.typeText(m.sig.Results().At(i).Type())
		switch {
		case m.lock == nil:
			f.printf("%s, ", result)
		case i < len(m.results):
			f.printf("%s %s, ", m.results[i], result)
		default:
			f.printf("%s error", n.err)
		}
	}
	f.printf(") {\n")
}

// call is a call of the decorated method.
func (m *method) call(t *target, n names) string {
	args := strings.Join(m.params, ", ")
	if m.sig.Variadic() {
		args += "..."
	}
	return n.self + "." + t.nextField() + "." + m.name + "(" + args + ")"
}

func (f *file) forward(t *target, m *method) {
	n := namesFor(m)
	f.printf("\n// %s calls next, without a lock.\n", m.name)
	f.signature(t, m, n)
	if m.sig.Results().Len() > 0 {
		f.printf("return ")
	}
	f.printf("%s\n}\n", m.call(t, n))
}

func (f *file) lockedMethod(t *target, m *method) {
	n := namesFor(m)
	f.printf("\n// %s calls next under the lock on %s.\n", m.name, keysText(m))
	f.signature(t, m, n)
	give := strings.Join(append(slices.Clone(m.results), n.err), ", ")
	ctx := m.params[0]
	f.printf("var %s []string\nif %s = %s.%s.err; %s == nil {\nif %s, %s = %s.%s(", n.keys, n.err, n.self, lockField(m), n.err, n.keys, n.err, n.self, keysMethod(m))
	for i := 1; i < len(m.params); i++ {
		f.printf("%s, ", m.params[i])
	}
	f.printf("); %s != nil {\n%s = %s.%s.client.NoKey(%s, %s)\n}\n}\n", n.err, n.err, n.self, lockField(m), ctx, n.err)
	f.printf("if %s != nil {\nreturn %s\n}\n", n.err, give)
	how := "do"
	if m.lock.manual {
		how = "hold"
	}
	f.printf("%s = %s.%s.%s(%s, %s, %t, func(%s context.Context) (%s error) {\n%s = %s\nreturn %s\n})\nreturn %s\n}\n",
		n.err, n.self, lockField(m), how, ctx, n.keys, m.lock.shared, ctx, n.err, give, m.call(t, n), n.err, give)
	f.keysOf(t, m, n)
}

// keysOf writes the method that makes a locked method's keys.
func (f *file) keysOf(t *target, m *method, n names) {
	f.printf("\nfunc (%s *Locked%s%s) %s(", n.self, t.name, typeArgs(t), keysMethod(m))
	for i := 1; i < len(m.params); i++ {
		f.printf("%s %s, ", m.params[i], f.typeText(m.sig.Params().At(i).Type()))
	}
	f.printf(") (%s []string, %s error) {\n", n.keys, n.err)
	if slices.ContainsFunc(m.keys, func(k keyCode) bool { return k.each != nil }) {
		f.printf("var %s []string\n", n.many)
	}
	for i, k := range m.keys {
		if k.each != nil {
			f.printf("%s = nil\n", n.many)
			f.list(k.each, n)
			f.printf("if len(%s) == 0 {\n%s = []string{\"\"} // an error, as an empty value is\n}\n", n.many, n.many)
			f.printf("for _, %s := range %s {\n", n.one, n.many)
		}
		f.printf("%s, %s = %s.%s.add(%s, %d, func(%s string) (string, bool) {\n", n.keys, n.err, n.self, lockField(m), n.keys, i, n.name)
		if len(k.values) > 0 {
			f.printf("switch %s {\n", n.name)
			for _, v := range k.values {
				f.printf("case %q:\n", v.name)
				if v == k.each {
					f.printf("return %s, true\n", n.one)
					continue
				}
				f.unless(v.lack, "return \"\", false\n")
				f.printf("return %s, true\n", v.expr)
			}
			f.printf("}\n")
		}
		f.printf("return \"\", false\n})\nif %s != nil {\nreturn nil, %s\n}\n", n.err, n.err)
		if k.each != nil {
			f.printf("}\n")
		}
	}
	f.printf("return %s, nil\n}\n", n.keys)
}

// list writes what collects the texts of several values. One that is missing is an empty
// text, which no key takes.
func (f *file) list(v *valueCode, n names) {
	collect := fmt.Sprintf("%s = append(%s, %s)\n", n.many, n.many, v.expr)
	loop := fmt.Sprintf("for _, v := range %s {\n", v.list)
	if len(v.lack) > 0 {
		f.printf("if !(%s) {\n", strings.Join(v.lack, " || "))
		defer f.printf("}\n")
	}
	f.printf("%s", loop)
	f.unless(v.each, fmt.Sprintf("%s = append(%s, \"\")\ncontinue\n", n.many, n.many))
	f.printf("%s}\n", collect)
}

// unless writes a statement that runs under one of some conditions.
func (f *file) unless(conditions []string, statement string) {
	if len(conditions) > 0 {
		f.printf("if %s {\n%s}\n", strings.Join(conditions, " || "), statement)
	}
}

func keysText(m *method) string {
	var all []string
	for _, k := range m.keys {
		all = append(all, strconv.Quote(fullPrefix(m.lock)+k.template))
	}
	return strings.Join(all, " and ")
}

func keysMethod(m *method) string { return "keysOf" + m.name }
