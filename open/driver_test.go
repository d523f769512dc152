package open_test

import _ "modernc.org/sqlite"
