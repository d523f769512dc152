package main

import (
	"errors"
	"fmt"
	"go/types"
	"strings"

	"golang.org/x/tools/go/packages"
)

// valueOf finds the value of a placeholder, a path of fields that begins at a parameter.
func valueOf(p *packages.Package, m *method, path string) (*valueCode, error) {
	parts := strings.Split(path, ".")
	at, err := parameter(m, parts[0])
	if err != nil {
		return nil, err
	}
	v, t := &valueCode{name: path, expr: m.params[at]}, m.sig.Params().At(at).Type()
	for _, name := range parts[1:] {
		if t, err = v.field(p, t, name); err != nil {
			return nil, err
		}
	}
	if slice, ok := t.Underlying().(*types.Slice); ok && !isByte(slice.Elem()) {
		v.list = v.expr
		var inner valueCode
		if inner.expr, err = inner.text("v", slice.Elem()); err != nil {
			return nil, err
		}
		v.expr, v.each = inner.expr, inner.lack
		return v, nil
	}
	v.expr, err = v.text(v.expr, t)
	return v, err
}

// parameter finds a parameter.
func parameter(m *method, name string) (int, error) {
	for i := 1; i < m.sig.Params().Len(); i++ {
		if m.sig.Params().At(i).Name() == name {
			return i, nil
		}
	}
	var names []string
	for i := 1; i < m.sig.Params().Len(); i++ {
		if n := m.sig.Params().At(i).Name(); n != "" && n != "_" {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return 0, fmt.Errorf("%s has no named parameter besides the context", m.name)
	}
	return 0, fmt.Errorf("%s has no parameter %s; there is %s", m.name, name, strings.Join(names, ", "))
}

// field goes on to a field, through pointers and embedded structs.
func (v *valueCode) field(p *packages.Package, t types.Type, name string) (types.Type, error) {
	found, index, _ := types.LookupFieldOrMethod(t, true, p.Types, name)
	field, ok := found.(*types.Var)
	if !ok {
		if unresolved(t) {
			return nil, fmt.Errorf("%s has a type that does not compile", v.expr)
		}
		return nil, fmt.Errorf("%s, a %s, has no field %s", v.expr, t, name)
	}
	for _, i := range index {
		if pointer, ok := t.Underlying().(*types.Pointer); ok {
			v.lack = append(v.lack, v.expr+" == nil")
			t = pointer.Elem()
		}
		shape, ok := t.Underlying().(*types.Struct)
		if !ok {
			return nil, fmt.Errorf("%s, a %s, is no struct", v.expr, t)
		}
		v.expr += "." + shape.Field(i).Name()
		t = shape.Field(i).Type()
	}
	if !field.Exported() && field.Pkg() != p.Types {
		return nil, fmt.Errorf("the field %s is not exported", name)
	}
	return t, nil
}

// text is an expression that makes a string of one of a type, such that different values
// make different strings.
func (v *valueCode) text(expr string, t types.Type) (string, error) {
	if pointer, ok := t.Underlying().(*types.Pointer); ok {
		if _, basic := pointer.Elem().Underlying().(*types.Basic); basic {
			v.lack = append(v.lack, expr+" == nil")
			return v.text("(*"+expr+")", pointer.Elem())
		}
	}
	if basic, ok := t.Underlying().(*types.Basic); ok && !isParam(t) {
		switch info := basic.Info(); {
		case basic.Kind() == types.Invalid:
			return "", errors.New("its type does not compile")
		case info&types.IsString != 0:
			return "string(" + expr + ")", nil
		case info&types.IsBoolean != 0:
			return "strconv.FormatBool(bool(" + expr + "))", nil
		case info&types.IsUnsigned != 0:
			return "strconv.FormatUint(uint64(" + expr + "), 10)", nil
		case info&types.IsInteger != 0:
			return "strconv.FormatInt(int64(" + expr + "), 10)", nil
		}
	}
	if isTime(t) {
		return "", errors.New("a time.Time has many texts for one moment; use a string or a number")
	}
	if !hasString(t) {
		return "", fmt.Errorf("a %s cannot stand in a key; strings, integers, booleans, lists of them and types with a String method can", t)
	}
	switch t.Underlying().(type) {
	case *types.Pointer, *types.Interface, *types.Signature, *types.Chan:
		v.lack = append(v.lack, expr+" == nil")
	case *types.Slice, *types.Map: // a net.IP without bytes prints as "<nil>"
		v.lack = append(v.lack, "len("+expr+") == 0")
	}
	if saysNothing(t) {
		v.lack = append(v.lack, "!"+expr+".IsValid()")
	}
	return expr + ".String()", nil
}

func isByte(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Kind() == types.Byte
}

func isParam(t types.Type) bool {
	_, ok := types.Unalias(t).(*types.TypeParam)
	return ok
}

func isTime(t types.Type) bool {
	if pointer, ok := t.Underlying().(*types.Pointer); ok {
		t = pointer.Elem()
	}
	text, _, _ := types.LookupFieldOrMethod(t, true, nil, "String") // of one that is embedded, too
	f, ok := text.(*types.Func)
	return ok && f.FullName() == "(time.Time).String"
}

// saysNothing says whether a type has a method that tells values from the lack of one, as
// those of net/netip have, whose zero values all print alike.
func saysNothing(t types.Type) bool {
	found, _, _ := types.LookupFieldOrMethod(t, true, nil, "IsValid")
	f, ok := found.(*types.Func)
	return ok && f.Signature().Params().Len() == 0 && f.Signature().Results().Len() == 1 &&
		types.Identical(f.Signature().Results().At(0).Type(), types.Typ[types.Bool])
}

// hasString says whether a value has a method String() string.
func hasString(t types.Type) bool {
	found, _, _ := types.LookupFieldOrMethod(t, true, nil, "String")
	f, ok := found.(*types.Func)
	if !ok || isParam(t) {
		return false
	}
	sig := f.Signature()
	return sig.Params().Len() == 0 && sig.Results().Len() == 1 && types.Identical(sig.Results().At(0).Type(), types.Typ[types.String])
}

// unresolved says whether a type does not compile.
func unresolved(t types.Type) bool {
	if pointer, ok := t.Underlying().(*types.Pointer); ok {
		t = pointer.Elem()
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Kind() == types.Invalid
}
