// Package orders is what the traffic programs in Go send: one order after the other, as JSON.
package orders

import (
	"fmt"
	"os"
)

// Rounds of Batch records each are what a program sends, and reads again.
const (
	Rounds     = 40
	Batch      = 32
	Partitions = 3
)

// Value is a record's value.
func Value(client string, number int) []byte {
	return fmt.Appendf(nil,
		`{"order": %d, "customer": "%s-%03d", "city": "Rotterdam", "items": [{"article": "A-%05d", `+
			`"count": %d, "price": %d.%02d}], "note": "leave it with the neighbour at number %d"}`,
		number, client, number*7%211, number*7919%100000, number%9+1, number*37%400, number%100,
		number%50)
}

// Key is a record's key.
func Key(number int) []byte { return fmt.Appendf(nil, "customer-%03d", number*7%211) }

// Must ends the program if there is an error.
func Must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
