// Times the message codec of franz-go. It reads a list of items, a line each: name, message, API
// key, version and file, split by tabs; it writes a line for each operation: name, operation and
// CPU seconds per call. What franz-go does not know is left out.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	warm   = 200 * time.Millisecond
	round  = 20 * time.Millisecond
	rounds = 15
)

// message is what requests and responses have in common.
type message interface {
	SetVersion(int16)
	MaxVersion() int16
	ReadFrom([]byte) error
	AppendTo([]byte) []byte
}

// sink keeps what calls return, so that the compiler cannot leave them out.
var sink any

func main() {
	list, err := os.Open(os.Args[1])
	check(err)
	lines := bufio.NewScanner(list)
	for lines.Scan() {
		parts := strings.Split(lines.Text(), "\t")
		key, err := strconv.ParseInt(parts[2], 10, 16)
		check(err)
		version, err := strconv.ParseInt(parts[3], 10, 16)
		check(err)
		data, err := os.ReadFile(parts[4])
		check(err)
		measure(parts[0], parts[1], int16(key), int16(version), data)
	}
	check(lines.Err())
}

func measure(item, name string, key, version int16, data []byte) {
	make := func() message {
		if strings.HasSuffix(name, "Request") {
			return kmsg.RequestForKey(key)
		}
		return kmsg.ResponseForKey(key)
	}
	one := make()
	if one == nil || version > one.MaxVersion() {
		return
	}
	one.SetVersion(version)
	check(one.ReadFrom(data))
	if !bytes.Equal(one.AppendTo(nil), data) {
		check(fmt.Errorf("Go does not reproduce the bytes of %s", item))
	}
	say(item, "decode", func() any {
		fresh := make()
		fresh.SetVersion(version)
		check(fresh.ReadFrom(data))
		return fresh
	})
	say(item, "encode", func() any { return one.AppendTo(nil) })
}

func say(item, operation string, call func() any) {
	calls := 0
	for start := time.Now(); time.Since(start) < warm; calls++ {
		sink = call()
	}
	turns := max(1, calls*int(round)/int(warm))
	var seconds [rounds]float64
	for number := range seconds {
		before := processSeconds()
		for range turns {
			sink = call()
		}
		seconds[number] = (processSeconds() - before) / float64(turns)
	}
	sort.Float64s(seconds[:])
	fmt.Printf("%s\t%s\t%g\n", item, operation, seconds[rounds/2])
}

// processSeconds is the CPU time of the process, its garbage collector's too.
func processSeconds() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
