package main

// reasons says why a goal is missed, by the row's id. It is kept by hand, so that it
// stays when the table is made anew; a reason is printed only while its goal is missed.
func reasons() map[string]string {
	return map[string]string{}
}
