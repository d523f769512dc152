package open

// SQLiteDriver chooses among registered drivers.
func SQLiteDriver(registered []string) (string, error) { return sqliteDriver(registered) }
