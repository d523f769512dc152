package servers

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
)

// image is a folder in memory. A database takes seconds to make the folder of its data,
// so one is made in a process, and each server gets a copy.
type image []entry

type entry struct {
	path string // in the folder
	mode fs.FileMode
	data []byte // of a file
}

// folder is an image that is made when it is first wanted.
type folder struct {
	once  sync.Once
	image image
	err   error
}

// write writes the folder at dir. make makes it there where it has to be made first;
// a failure is everybody's.
func (f *folder) write(dir string, owner *syscall.Credential, make func() error) error {
	made := false
	f.once.Do(func() {
		if f.err = make(); f.err == nil {
			made = true
			f.image, f.err = imageOf(dir)
		}
	})
	if made || f.err != nil {
		return f.err
	}
	return f.image.write(dir, owner)
}

func imageOf(dir string) (image, error) {
	var all image
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		e := entry{mode: info.Mode()}
		if e.path, err = filepath.Rel(dir, path); err != nil {
			return err
		}
		if !d.IsDir() {
			e.data, err = os.ReadFile(path)
		}
		all = append(all, e)
		return err
	})
	return all, err
}

// write writes the folder, for an owner other than this process where there is one.
func (m image) write(dir string, owner *syscall.Credential) error {
	for _, e := range m {
		path := filepath.Join(dir, e.path)
		var err error
		if e.mode.IsDir() {
			err = os.Mkdir(path, e.mode.Perm())
		} else {
			err = os.WriteFile(path, e.data, e.mode.Perm())
		}
		if err == nil && owner != nil {
			err = os.Chown(path, int(owner.Uid), int(owner.Gid))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// starts are the database servers that may come up at a time. Each is seconds of work, and
// many at once would keep those that serve already from answering in time.
var starts = make(chan struct{}, runtime.NumCPU())

// oneOfFew does a start when few others are under way.
func oneOfFew(start func() error) error {
	starts <- struct{}{}
	defer func() { <-starts }()
	return start()
}
