// Package probe is what the probes in Go share: steps that are reported as JSON lines.
package probe

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// Topic is the quorum's topic, and Patience the time that a step may take.
const (
	Topic    = "__cluster_metadata"
	Patience = 20 * time.Second
)

// The quorum writes one control record for each of its leaders; clients do not show them.
const controlRecordsMax = 10

// Step returns its result.
type Step struct {
	Name string
	Take func() (string, error)
}

// Servers are the bootstrap servers, from the last argument.
func Servers() []string {
	return strings.Split(os.Args[len(os.Args)-1], ",")
}

// A Login is what SASL_SSL takes.
type Login struct {
	CA        string `json:"ca"`
	Mechanism string `json:"mechanism"`
	User      string `json:"user"`
	Password  string `json:"password"`
}

// LoggingIn is the login of this run, from the environment; nil for PLAINTEXT.
func LoggingIn() *Login {
	given := os.Getenv("KRAFTWIRE_PROBE_LOGIN")
	if given == "" {
		return nil
	}
	login := &Login{}
	if err := json.Unmarshal([]byte(given), login); err != nil {
		panic(err)
	}
	return login
}

// TLS trusts the login's authority alone.
func (l *Login) TLS() *tls.Config {
	roots := x509.NewCertPool()
	data, err := os.ReadFile(l.CA)
	if err != nil || !roots.AppendCertsFromPEM(data) {
		panic(fmt.Sprintf("no authority in %s: %v", l.CA, err))
	}
	return &tls.Config{RootCAs: roots}
}

// Run takes the steps in order and reports each; one that fails does not stop the others.
func Run(module string, steps ...Step) {
	say(map[string]any{"version": version(module)})
	for _, step := range steps {
		detail, err := step.Take()
		if err != nil {
			detail = err.Error()
		}
		say(map[string]any{"step": step.Name, "ok": err == nil, "detail": detail})
	}
}

// Records are those that a client has read, from the beginning of the quorum's topic.
type Records struct {
	first, last, count int64
	problem            error
}

// Add takes the next record.
func (r *Records) Add(offset int64, value []byte) {
	switch {
	case r.problem != nil:
		return
	case r.count > 0 && offset <= r.last:
		r.problem = fmt.Errorf("offset %d after %d", offset, r.last)
	case len(value) == 0 || value[0] != 1:
		// Every metadata record begins with the version of its frame.
		r.problem = fmt.Errorf("no metadata record at %d", offset)
	}
	if r.count == 0 {
		r.first = offset
	}
	r.last = offset
	r.count++
}

// Reached says whether all records below an offset were read, or reading more is pointless.
func (r *Records) Reached(end int64) bool {
	return r.problem != nil || r.count > 0 && r.last >= end-1
}

// Check says how many records there are, and what is wrong with them.
func (r *Records) Check(highWatermark int64) (string, error) {
	if r.problem != nil {
		return "", r.problem
	}
	missing := r.last + 1 - r.count
	if highWatermark <= 0 || !r.Reached(highWatermark) || missing > controlRecordsMax {
		return "", fmt.Errorf(
			"%d records, offsets %d-%d, high watermark %d", r.count, r.first, r.last, highWatermark)
	}
	return fmt.Sprintf("all up to the high watermark, from offset %d", r.first), nil
}

// Expect fails with a text unless something holds.
func Expect(holds bool, format string, values ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, values...)
}

func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, each := range info.Deps {
		if each.Path == module {
			return strings.TrimPrefix(each.Version, "v")
		}
	}
	return "?"
}

func say(line map[string]any) {
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}
