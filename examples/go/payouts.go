// A payout worker that has the lock for as long as it pays, and pays nothing without it.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"time"
)

var api = "http://127.0.0.1:7070"

// call sends what has a body as JSON. A refusal is an error with the code in it.
func call[Answer any](method, path string, body any, limit time.Duration) (Answer, error) {
	var answer Answer
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var data bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&data).Encode(body); err != nil {
			return answer, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, api+path, &data)
	if err != nil {
		return answer, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		var refusal struct{ Code, Message string }
		_ = json.NewDecoder(response.Body).Decode(&refusal)
		return answer, errors.New(refusal.Code + ": " + refusal.Message)
	}
	return answer, json.NewDecoder(response.Body).Decode(&answer)
}

type session struct {
	ID             string  `json:"session_id"`
	KeepaliveEvery float64 `json:"keepalive_every_s"`
}

func (s session) keepAlive() {
	for {
		// An error needs no handling: held tells whether it matters.
		_, _ = call[any]("POST", "/v1/sessions/"+s.ID+"/keepalive", struct{}{}, 5*time.Second)
		time.Sleep(time.Duration(s.KeepaliveEvery * float64(time.Second)))
	}
}

// held asks before each step that matters. No answer in time counts as no.
func held(lock string, token int64) bool {
	answer, err := call[struct {
		Held     bool
		Revoking any
	}]("GET", fmt.Sprintf("%s/held?token=%d", lock, token), nil, 500*time.Millisecond)
	return err == nil && answer.Held && answer.Revoking == nil
}

func work() error {
	opened, err := call[session]("POST", "/v1/sessions",
		map[string]any{"client": "payout-worker", "keepalive": "app", "max_hold_ms": 600_000}, 5*time.Second)
	if err != nil {
		return err
	}
	defer call[any]("DELETE", "/v1/sessions/"+opened.ID, nil, 5*time.Second)
	go opened.keepAlive()

	lock := "/v1/locks/" + url.PathEscape("payouts/nightly")
	ask := map[string]any{"session_id": opened.ID, "wait_ms": 30_000, "request": rand.Text()}
	grant, err := call[struct{ Token int64 }]("POST", lock+"/acquire", ask, 35*time.Second)
	if err != nil {
		return err
	}
	for _, batch := range []string{"b1", "b2"} {
		if !held(lock, grant.Token) {
			return errors.New("the lock is lost")
		}
		fmt.Printf("pay %s under token %d\n", batch, grant.Token) // UPDATE ... WHERE fence <= token
	}
	return nil
}

func main() {
	if address := os.Getenv("LEASEHOLD_URL"); address != "" {
		api = address
	}
	if err := work(); err != nil {
		log.Fatal(err)
	}
}
