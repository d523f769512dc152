package guard

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const sharedClock = unix.CLOCK_BOOTTIME

// alarm rings at instants of the shared clock, also when the machine was suspended
// meanwhile, which no timer of package time does.
type alarm struct {
	file *os.File
	rang chan struct{}
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(sharedClock, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("timer: %w", err)
	}
	a := &alarm{file: os.NewFile(uintptr(fd), "timer"), rang: make(chan struct{}, 1)}
	go a.relay()
	return a, nil
}

func (a *alarm) relay() {
	var count [8]byte
	for {
		if _, err := a.file.Read(count[:]); err != nil {
			return
		}
		if binary.NativeEndian.Uint64(count[:]) > 0 {
			ring(a.rang)
		}
	}
}

// set makes the alarm ring at that instant and at no other.
func (a *alarm) set(at Instant) error {
	spec := unix.ItimerSpec{}
	if at != never {
		spec.Value = unix.NsecToTimespec(int64(max(at, 1)))
	}
	return control(a.file, func(fd int) error {
		return unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME, &spec, nil)
	})
}

func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	if err := raw.Control(func(fd uintptr) { done = do(int(fd)) }); err != nil {
		return err
	}
	return done
}
