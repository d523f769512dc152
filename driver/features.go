package driver

import "time"

// Features are what a store can do, constant for a driver value.
type Features struct {
	Err          error                     // what the constructor found wrong; hasp.New returns it
	Line         bool                      // false: Try only, waiting by Freed and backoff
	Shared       bool                      // weights and capacities above 1
	Tokens       bool                      // false: numbers may repeat, so every token is 0
	ConfirmGrant bool                      // a signalled grant must be renewed before use
	Guard        bool                      // the store's guard works in a transaction of the user's
	MaxKeys      int                       // keys to a claim; 0: 64
	Together     func(keys []string) error // whether one step can hold these keys, else ErrUnsupported naming the option that mends it; nil: always
	Poll         time.Duration             // first pause between looks while waiting unheard, doubled up to 25 times it; 0: by LookAgain only
	MinLife      time.Duration             // shorter lives are ErrInvalid; 0: none
	Step         time.Duration             // lives are rounded up to a multiple; 0: exact
}
