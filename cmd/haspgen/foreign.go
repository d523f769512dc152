package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/packages"
)

// foreign finds the directives of methods that other packages declare. The types of those
// are known without their source, so that is read here.
type foreign struct {
	files  *token.FileSet
	parsed map[string]*ast.File
}

func newForeign() *foreign {
	return &foreign{files: token.NewFileSet(), parsed: make(map[string]*ast.File)}
}

// directive finds the directive of a method; nil: there is none.
func (f *foreign) directive(p *packages.Package, m *types.Func, target token.Position) (*directive, error) {
	at := p.Fset.Position(m.Origin().Pos())
	if m.Pkg() == nil || strings.HasPrefix(at.Filename, "$GOROOT") {
		return nil, nil //nolint:nilnil // the language and the standard library have no directives
	}
	file := f.parsed[at.Filename]
	if file == nil {
		var err error
		file, err = parser.ParseFile(f.files, at.Filename, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, faultf(target, "the source of the embedded method %s of %s, which may say how it is locked, cannot be read: %v", m.Name(), m.Pkg().Path(), err)
		}
		f.parsed[at.Filename] = file
	}
	field := f.field(file, m.Name(), at.Line)
	if field == nil {
		return nil, nil //nolint:nilnil // it is not declared in an interface
	}
	d, err := directiveOf(f.files, field.Doc)
	if err == nil && d == nil {
		err = almost(f.files, field.Doc)
	}
	return d, err
}

// field finds a method of an interface by its name and line, which is all that is known
// of where it stands.
func (f *foreign) field(file *ast.File, name string, line int) *ast.Field {
	var found *ast.Field
	ast.Inspect(file, func(n ast.Node) bool {
		shape, ok := n.(*ast.InterfaceType)
		if !ok {
			return found == nil
		}
		for _, field := range shape.Methods.List {
			for _, id := range field.Names {
				if id.Name == name && f.files.Position(id.Pos()).Line == line {
					found = field
				}
			}
		}
		return found == nil
	})
	return found
}
