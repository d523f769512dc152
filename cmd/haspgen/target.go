package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// target is an interface that gets a decorator.
type target struct {
	name    string
	params  *types.TypeParamList
	methods []*method // in the order in which they are written, then the embedded ones
}

// method is one of its methods.
type method struct {
	name    string
	sig     *types.Signature
	params  []string   // their names, others where those cannot be used
	results []string   // the same, the error excluded
	lock    *directive // nil: it is passed on as it is
	keys    []keyCode
}

// targets finds the interfaces of a package that have directives.
func targets(p *packages.Package) ([]*target, error) {
	directives, err := directivesOf(p)
	if err != nil {
		return nil, err
	}
	var all []*target
	others := newForeign()
	for _, spec := range interfaces(p) {
		t, err := targetOf(p, spec, directives, others)
		if err != nil {
			return nil, err
		}
		if t != nil {
			all = append(all, t)
		}
	}
	return all, strayDirective(p)
}

// strayDirective finds a directive that is not above a method of an interface.
func strayDirective(p *packages.Package) error {
	used := make(map[*ast.CommentGroup]bool)
	for _, spec := range interfaces(p) {
		for _, field := range fieldsOf(spec) {
			used[field.Doc] = true
		}
	}
	for _, file := range p.Syntax {
		for _, group := range file.Comments {
			if used[group] {
				continue
			}
			if d, err := directiveOf(p.Fset, group); err != nil || d != nil {
				return faultf(p.Fset.Position(group.Pos()), "%s stands above no method of an interface, where it would do nothing", mark)
			}
		}
	}
	return nil
}

func fieldsOf(spec *ast.TypeSpec) []*ast.Field {
	if i, ok := spec.Type.(*ast.InterfaceType); ok {
		return i.Methods.List
	}
	return nil
}

// directivesOf finds the directives of all methods of a package's interfaces, by where a
// method's name stands: an interface has those of the methods that it embeds, too.
func directivesOf(p *packages.Package) (map[token.Pos]*directive, error) {
	all := make(map[token.Pos]*directive)
	for _, spec := range interfaces(p) {
		for _, field := range fieldsOf(spec) {
			d, err := directiveOf(p.Fset, field.Doc)
			if err != nil {
				return nil, err
			}
			if d == nil {
				if err := almost(p.Fset, field.Doc); err != nil {
					return nil, err
				}
				continue
			}
			if len(field.Names) != 1 {
				return nil, faultf(d.at, "an embedded interface cannot be locked; put the directive above its methods")
			}
			all[field.Names[0].Pos()] = d
		}
	}
	return all, nil
}

// targetOf reads an interface; nil: it has no directive.
func targetOf(p *packages.Package, spec *ast.TypeSpec, directives map[token.Pos]*directive, others *foreign) (*target, error) {
	var order []string
	locked := false
	for _, field := range fieldsOf(spec) {
		for _, name := range field.Names {
			locked = locked || directives[name.Pos()] != nil
			order = append(order, name.Name)
		}
	}
	if !locked {
		return nil, nil //nolint:nilnil // no directive is no failure
	}
	named, ok := p.TypesInfo.Defs[spec.Name].Type().(*types.Named)
	if !ok {
		return nil, faultf(p.Fset.Position(spec.Pos()), "%s is an alias; put the directives where the interface is declared", spec.Name.Name)
	}
	shape, ok := named.Underlying().(*types.Interface)
	if !ok || !shape.IsMethodSet() {
		return nil, faultf(p.Fset.Position(spec.Pos()), "%s is a constraint, of which there are no values to decorate", spec.Name.Name)
	}
	t := &target{name: spec.Name.Name, params: named.TypeParams()}
	for m := range shape.Methods() {
		if !m.Exported() && m.Pkg() != p.Types {
			return nil, faultf(p.Fset.Position(spec.Pos()), "%s embeds the unexported method %s of %s, which only that package can have", t.name, m.Name(), m.Pkg().Path())
		}
		d := directives[m.Origin().Pos()]
		var err error
		if m.Pkg() != p.Types {
			d, err = others.directive(p, m, p.Fset.Position(spec.Pos()))
		}
		if err != nil {
			return nil, err
		}
		built, err := methodOf(p, m, d)
		if err != nil {
			return nil, err
		}
		t.methods = append(t.methods, built)
	}
	t.sort(order)
	return t, t.checkClients()
}

// sort puts the methods of a given order first.
func (t *target) sort(order []string) {
	place := func(m *method) int {
		if i := slices.Index(order, m.name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(t.methods, func(a, b *method) int { return place(a) - place(b) })
}

// checkClients refuses names of clients that the constructor has already.
func (t *target) checkClients() error {
	for _, m := range t.methods {
		if m.lock != nil && slices.Contains([]string{"next", "client", "_", "newHaspLock", "haspTimes"}, m.lock.client) {
			return faultf(m.lock.at, "client=%s: the constructor cannot have another parameter of that name", m.lock.client)
		}
	}
	return nil
}

// clients are the constructor's clients; the empty name is the one for methods that name
// none.
func (t *target) clients() []string {
	var all []string
	for _, m := range t.methods {
		if m.lock != nil && !slices.Contains(all, m.lock.client) {
			all = append(all, m.lock.client)
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return min(len(a), 1) - min(len(b), 1) })
	return all
}

func methodOf(p *packages.Package, f *types.Func, d *directive) (*method, error) {
	sig := f.Signature()
	m := &method{name: f.Name(), sig: sig, lock: d}
	m.nameParams()
	results := sig.Results().Len()
	fails := results > 0 && types.Identical(sig.Results().At(results-1).Type(), types.Universe.Lookup("error").Type())
	for i := range results {
		if i == results-1 && fails && d != nil {
			break
		}
		m.results = append(m.results, free("r"+strconv.Itoa(i), m.params))
	}
	if d == nil {
		return m, m.compiles(p.Fset.Position(f.Pos()))
	}
	switch {
	case sig.Params().Len() == 0 || !isContext(sig.Params().At(0).Type()):
		return nil, faultf(d.at, "%s cannot be locked: its first parameter must be a context.Context, which ends the waiting", m.name)
	case !fails:
		return nil, faultf(d.at, "%s cannot be locked: its last result must be an error, which says that the lock was not got", m.name)
	}
	for _, k := range d.keys {
		code, err := keyCodeOf(p, m, k)
		if err != nil {
			return nil, err
		}
		if d.shared && code.each != nil {
			return nil, faultf(k.at, "a shared lock has one key, but {%s} has several values", code.each.name)
		}
		m.keys = append(m.keys, code)
	}
	return m, m.compiles(p.Fset.Position(f.Pos()))
}

// compiles says whether all types of a method were found.
func (m *method) compiles(at token.Position) error {
	if strings.Contains(types.TypeString(m.sig, nil), types.Typ[types.Invalid].String()) {
		return faultf(at, "%s has a type that does not compile", m.name)
	}
	return nil
}

// nameParams names the parameters as the interface does, unless they have no names, or
// such as hide what the generated code needs.
func (m *method) nameParams() {
	var taken []string
	for v := range m.sig.Params().Variables() {
		taken = append(taken, v.Name())
	}
	for i := range m.sig.Params().Len() {
		name := m.sig.Params().At(i).Name()
		if name == "" || name == "_" {
			name = free("p"+strconv.Itoa(i), taken)
		} else if types.Universe.Lookup(name) != nil || slices.Contains(packagesNeeded, name) {
			name = free(name+"_", taken)
		}
		taken = append(taken, name)
		m.params = append(m.params, name)
	}
}

// free is a name that none of the others is.
func free(name string, others []string) string {
	for slices.Contains(others, name) {
		name += "_"
	}
	return name
}

func isContext(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "context" && named.Obj().Name() == "Context"
}

// keyCode is a template and how its values are made.
type keyCode struct {
	template string
	values   []*valueCode
	each     *valueCode // the one with several values, of which each makes a key; nil: none
}

// valueCode is how a value is made.
type valueCode struct {
	name string   // of the placeholder
	lack []string // conditions under which there is no value
	expr string   // a string; of several values, one of them in terms of "v"
	list string   // the slice, where there are several
	each []string // conditions under which one of them, "v", has no value
}

func keyCodeOf(p *packages.Package, m *method, k key) (keyCode, error) {
	code := keyCode{template: k.template.String()}
	for _, name := range k.template.Names() {
		v, err := valueOf(p, m, name)
		if err != nil {
			return code, faultf(k.at, "{%s}: %v", name, err)
		}
		if v.list != "" && code.each != nil {
			return code, faultf(k.at, "{%s} and {%s} both have several values, which would give every combination; use a key for each", code.each.name, name)
		}
		if v.list != "" {
			code.each = v
		}
		code.values = append(code.values, v)
	}
	return code, nil
}

// position is where a package is, for errors without a better place.
func position(p *packages.Package) token.Position {
	if len(p.GoFiles) == 0 {
		return token.Position{Filename: p.PkgPath}
	}
	return token.Position{Filename: p.GoFiles[0]}
}
