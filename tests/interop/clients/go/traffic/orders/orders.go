// Package orders is what the traffic programs in Go send: one order after the other, as JSON, and
// how they take their steps.
package orders

import (
	"context"
	"fmt"
	"time"

	"kraftwire/probes/probe"
)

// Rounds of Batch records each are what a program sends, and reads again, with More by an idempotent
// producer. Each third of the Transactions is aborted.
const (
	Rounds       = 40
	Batch        = 32
	Count        = Rounds * Batch
	More         = 2 * Batch
	Partitions   = 3
	Transactions = 6
	Retention    = "3600000"
)

const patience = 60 * time.Second

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

type failure struct{ error }

// Must ends the step if there is an error.
func Must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Expect ends the step unless something holds.
func Expect(holds bool, format string, values ...any) {
	Must(probe.Expect(holds, format, values...))
}

// Until asks again and again, as a broker learns a little later what a controller has decided.
func Until(limited context.Context, isSo func() bool) {
	for !isSo() {
		Must(limited.Err())
	}
}

// Step is one that ends early by Must.
func Step(name string, take func(context.Context) string) probe.Step {
	return probe.Step{Name: name, Take: func() (detail string, err error) {
		limited, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		defer func() {
			switch found := recover().(type) {
			case nil:
			case failure:
				err = found.error
			default:
				panic(found)
			}
		}()
		return take(limited), nil
	}}
}
