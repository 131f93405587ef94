// Command etcd-mutex measures etcd's own lock, concurrency.Mutex, the way the bench measures Leasehold. It prints one JSON object
// (mode "lock"), or one line for each lock that it got (mode "probe").
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const (
	sessionTTLSeconds = 60
	probeEvery        = 20 * time.Millisecond
	probeLimit        = 10 * time.Second
)

type result struct {
	Operations int     `json:"operations"`
	PerSecond  float64 `json:"perSecond"`
	P50Ms      float64 `json:"p50Ms"`
	P99Ms      float64 `json:"p99Ms"`
	MaxMs      float64 `json:"maxMs"`
	MeanMs     float64 `json:"meanMs"`
}

func main() {
	endpoints := flag.String("endpoints", "", "etcd client URLs, separated by commas")
	mode := flag.String("mode", "lock", "lock or probe")
	workers := flag.Int("workers", 20, "workers that lock and unlock in a loop")
	oneName := flag.Bool("one-name", false, "all workers lock the same name")
	seconds := flag.Float64("seconds", 5, "how long")
	flag.Parse()
	urls := strings.Split(*endpoints, ",")
	switch *mode {
	case "lock":
		lock(urls, *workers, *oneName, time.Duration(*seconds*float64(time.Second)))
	case "probe":
		probe(urls)
	default:
		log.Fatalf("no mode %q", *mode)
	}
}

func connect(urls []string) *clientv3.Client {
	client, err := clientv3.New(clientv3.Config{Endpoints: urls, DialTimeout: 5 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	return client
}

func newSession(client *clientv3.Client) *concurrency.Session {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(sessionTTLSeconds))
	if err != nil {
		log.Fatal(err)
	}
	return session
}

// lock: a worker's latency is the wait for its lock. Workers are spread over one client for each member, and on distinct names share its
// session; on one name each has its own, since a session queues once for a name.
func lock(urls []string, workers int, oneName bool, length time.Duration) {
	var clients []*clientv3.Client
	var shared []*concurrency.Session
	for _, url := range urls {
		client := connect([]string{url})
		defer client.Close()
		clients = append(clients, client)
		shared = append(shared, newSession(client))
	}
	sessions := make([]*concurrency.Session, workers)
	for worker := range sessions {
		if sessions[worker] = shared[worker%len(shared)]; oneName {
			sessions[worker] = newSession(clients[worker%len(clients)])
		}
	}
	waits := make([][]time.Duration, workers)
	started := time.Now()
	var all sync.WaitGroup
	for worker, session := range sessions {
		all.Add(1)
		go func() {
			defer all.Done()
			ctx := context.Background()
			for turn := 0; time.Since(started) < length; turn++ {
				name := fmt.Sprintf("mutex/%d-%d", worker, turn%5000)
				if oneName {
					name = "mutex/the-one"
				}
				mutex := concurrency.NewMutex(session, name)
				asked := time.Now()
				if err := mutex.Lock(ctx); err != nil {
					log.Fatal(err)
				}
				waits[worker] = append(waits[worker], time.Since(asked))
				if err := mutex.Unlock(ctx); err != nil {
					log.Fatal(err)
				}
			}
		}()
	}
	all.Wait()
	print(waits, time.Since(started), oneName)
}

// print counts lock and unlock as one operation each; on one name it counts hand-overs.
func print(waits [][]time.Duration, took time.Duration, oneName bool) {
	var times []float64
	sum := 0.0
	for _, of := range waits {
		for _, wait := range of {
			ms := float64(wait) / float64(time.Millisecond)
			times = append(times, ms)
			sum += ms
		}
	}
	sort.Float64s(times)
	at := func(share float64) float64 { return times[min(len(times)-1, int(float64(len(times))*share))] }
	operations := 2 * len(times)
	if oneName {
		operations = len(times)
	}
	answer := result{
		Operations: operations,
		PerSecond:  float64(operations) / took.Seconds(),
		P50Ms:      at(0.5),
		P99Ms:      at(0.99),
		MaxMs:      at(1),
		MeanMs:     sum / float64(len(times)),
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		log.Fatal(err)
	}
}

// probe starts a lock of another name every 20 ms, whether or not earlier ones are done, and prints for each that it got when it was
// planned and when it was had, in milliseconds of the wall clock. It ends when nobody reads any more.
func probe(urls []string) {
	client := connect(urls)
	session := newSession(client)
	var printing sync.Mutex
	for turn, planned := 0, time.Now(); ; turn, planned = turn+1, planned.Add(probeEvery) {
		time.Sleep(time.Until(planned))
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), probeLimit)
			defer cancel()
			mutex := concurrency.NewMutex(session, fmt.Sprintf("probe/%d", turn))
			if mutex.Lock(ctx) != nil {
				return
			}
			had := time.Now()
			printing.Lock()
			_, err := fmt.Printf("%d %d\n", planned.UnixMilli(), had.UnixMilli())
			printing.Unlock()
			if err != nil {
				os.Exit(0)
			}
			_ = mutex.Unlock(ctx)
		}()
	}
}
