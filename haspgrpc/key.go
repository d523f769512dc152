package haspgrpc

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/keytmpl"
)

// Key says what the calls of a method lock. Fields and Func make one.
type Key struct {
	message func() proto.Message
	keys    func(context.Context, proto.Message) ([]string, error)
}

// Fields makes a Key of templates over the fields of a request, one for each key; see
// package keytmpl. {order.id} is the field id of the message in the field order, by the
// names in the proto file. Strings, integers, booleans and enumerations (by number) can
// stand in a key. What the message does not have is an error at once. A field that is not
// set is one when called; without explicit presence so is a 0.
func Fields[M proto.Message](template string, more ...string) (Key, error) {
	templates, err := keytmpl.ParseAll(append([]string{template}, more...)...)
	if err != nil {
		return Key{}, err
	}
	var none M
	shape := none.ProtoReflect().Descriptor()
	paths := make(map[string][]protoreflect.FieldDescriptor)
	for _, t := range templates {
		for _, name := range t.Names() {
			if paths[name], err = pathOf(shape, name); err != nil {
				return Key{}, fmt.Errorf("%w: key template %q: %w", hasp.ErrInvalid, t, err)
			}
		}
	}
	return Func(func(_ context.Context, m M) ([]string, error) {
		return keytmpl.Keys(templates, func(name string) (string, bool) { return value(m.ProtoReflect(), paths[name]) })
	}), nil
}

// Func makes a Key of a function, which answers the keys of a request: one, or several,
// all or nothing. Where it fails the method does not run, and the client is told that its
// request is at fault.
func Func[M proto.Message](keys func(context.Context, M) ([]string, error)) Key {
	return Key{
		message: func() proto.Message {
			var none M
			return none.ProtoReflect().New().Interface()
		},
		keys: func(ctx context.Context, m proto.Message) ([]string, error) {
			request, ok := m.(M)
			if !ok {
				return nil, fmt.Errorf("%w: the request is a %T, the key was made for a %T", errSetUp, m, request)
			}
			return keys(ctx, request)
		},
	}
}

// pathOf finds a field by its path.
func pathOf(shape protoreflect.MessageDescriptor, name string) ([]protoreflect.FieldDescriptor, error) {
	var path []protoreflect.FieldDescriptor
	for part := range strings.SplitSeq(name, ".") {
		if shape == nil {
			return nil, fmt.Errorf("{%s}: %s is no message and has no field %s", name, path[len(path)-1].FullName(), part)
		}
		field := shape.Fields().ByName(protoreflect.Name(part))
		if field == nil {
			return nil, fmt.Errorf("{%s}: %s has no field %s; fields are named as in the proto file", name, shape.FullName(), part)
		}
		if field.IsList() || field.IsMap() {
			return nil, fmt.Errorf("{%s}: %s has several values; write a function for Func", name, field.FullName())
		}
		path, shape = append(path, field), field.Message()
	}
	last := path[len(path)-1]
	switch last.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind, protoreflect.BytesKind, protoreflect.FloatKind, protoreflect.DoubleKind:
		return nil, fmt.Errorf("{%s}: %s is a %s, which cannot stand in a key", name, last.FullName(), last.Kind())
	case protoreflect.BoolKind, protoreflect.EnumKind, protoreflect.StringKind,
		protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind, protoreflect.Uint32Kind, protoreflect.Fixed32Kind,
		protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
	}
	return path, nil
}

// value follows a path; false: not set.
func value(m protoreflect.Message, path []protoreflect.FieldDescriptor) (string, bool) {
	last := path[len(path)-1]
	for _, field := range path[:len(path)-1] {
		if !m.Has(field) {
			return "", false
		}
		m = m.Get(field).Message()
	}
	if !m.Has(last) && (last.Kind() != protoreflect.BoolKind || last.HasPresence()) {
		return "", false
	}
	v := m.Get(last)
	if last.Kind() == protoreflect.EnumKind {
		return strconv.Itoa(int(v.Enum())), true
	}
	return v.String(), true
}
