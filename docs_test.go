package hasp_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestQuickStartInREADMEIsTheExample(t *testing.T) {
	t.Parallel()
	_, program, _ := strings.Cut(read(t, "README.md"), "```go\npackage main\n")
	program, _, _ = strings.Cut(program, "```\n")
	example := read(t, "example_test.go")

	if got, want := between(t, program, "import (", "\n)"), between(t, example, "import (", "\n)"); got != want {
		t.Errorf("README imports\n%s\nthe example imports\n%s", got, want)
	}
	got := between(t, program, "func main() {\n", "\n}\n")
	want := between(t, example, "func Example() {\n", "\n\t// Output:\n")
	if got != want {
		t.Errorf("README has\n%s\nthe example has\n%s", got, want)
	}
	if n := strings.Count(got, "\n") + 1; n > 15 {
		t.Errorf("the body of the quick start has %d lines, want at most 15", n)
	}
}

func TestLocksInREADMEAreTheExample(t *testing.T) {
	t.Parallel()
	got := between(t, read(t, "README.md"), "```go\nlease, err :=", "\n```")
	want := between(t, read(t, "example_locks_test.go"), "\tlease, err :=", "\n}\n")
	if want = strings.ReplaceAll(want, "\n\t", "\n"); got != want {
		t.Errorf("README has\n%s\nthe example has\n%s", got, want)
	}
}

func TestREADMEIsShort(t *testing.T) {
	t.Parallel()
	if n := strings.Count(read(t, "README.md"), "\n"); n > 200 {
		t.Errorf("README.md has %d lines, want at most 200", n)
	}
}

func TestREADMEMapsEveryFolder(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(read(t, "README.md"), "| folder |")
	section, _, _ = strings.Cut(section, "\n\n")
	mapped := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(section, -1) {
		mapped[row[1]] = true
		if _, err := os.Stat(row[1]); err != nil {
			t.Errorf("README maps a folder that is not there: %v", err)
		}
	}
	for _, file := range files(t, ".go") {
		folder := path.Dir(file)
		for folder != "." && !mapped[folder] {
			folder = path.Dir(folder)
		}
		if top := path.Dir(file); folder == "." && top != "." && !mapped[top] {
			mapped[top] = true // said once
			t.Errorf("README does not map the folder %s", top)
		}
	}
}

func TestLinksInDocsLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#"]+)(#[^)]*)?\)`)
	for _, file := range files(t, ".md") {
		for _, m := range link.FindAllStringSubmatch(read(t, file), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// between answers the text from the first begin to the first end after it.
func between(t *testing.T, s, begin, end string) string {
	t.Helper()
	_, s, hasBegin := strings.Cut(s, begin)
	s, _, hasEnd := strings.Cut(s, end)
	if !hasBegin || !hasEnd {
		t.Fatalf("no text between %q and %q", begin, end)
	}
	return s
}

// files answers the files of the tree with an extension, without hidden folders, bin and
// testdata.
func files(t *testing.T, extension string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "bin" || name == "testdata" || len(name) > 1 && name[0] == '.') {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, extension) {
			found = append(found, filepath.ToSlash(p))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
