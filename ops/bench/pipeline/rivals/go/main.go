// A loop over the APNs client apns2, which gorush is built on: a goroutine for each stream, tokens in
// memory; nothing is stored and nothing is sent again. Reads a number of devices from each line of
// standard input, pushes to them, and answers with the seconds.
package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sideshow/apns2"
	"github.com/sideshow/apns2/payload"
	"github.com/sideshow/apns2/token"
	"golang.org/x/net/http2"
)

// Streams of a connection, as APNs allows.
const streams = 1000

// Token of a device, as the gateway of the benchmark counts it (gateway/gateway.ts).
func tokenOf(number int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(number)))
	return hex.EncodeToString(sum[:])[:56] + fmt.Sprintf("%08x", number)
}

func newClient(url string, caFile string) (*apns2.Client, error) {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	client := apns2.NewTokenClient(&token.Token{AuthKey: key, KeyID: "ABCDEFGHIJ", TeamID: "KLMNOPQRST"})
	client.HTTPClient.Transport.(*http2.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	client.HTTPClient.Timeout = time.Minute
	client.Host = url
	return client, nil
}

func push(client *apns2.Client, topic string, tokens []string) error {
	content := payload.NewPayload().Alert("Benchmark")
	var next atomic.Int64
	var failed atomic.Value
	var lanes sync.WaitGroup
	for lane := 0; lane < streams; lane++ {
		lanes.Add(1)
		go func() {
			defer lanes.Done()
			for failed.Load() == nil {
				index := int(next.Add(1)) - 1
				if index >= len(tokens) {
					return
				}
				notification := &apns2.Notification{DeviceToken: tokens[index], Topic: topic, Payload: content}
				answer, err := client.Push(notification)
				if err != nil {
					failed.Store(err.Error())
				} else if !answer.Sent() {
					failed.Store(fmt.Sprint(answer.StatusCode, " ", answer.Reason))
				}
			}
		}()
	}
	lanes.Wait()
	if message := failed.Load(); message != nil {
		return fmt.Errorf("%v", message)
	}
	return nil
}

func main() {
	url, caFile, topic := os.Args[1], os.Args[2], os.Args[3]
	answer := json.NewEncoder(os.Stdout)
	client, err := newClient(url, caFile)
	if err != nil {
		panic(err)
	}
	answer.Encode(map[string]any{"ready": true})
	tokens := []string{}
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		devices, _ := strconv.Atoi(orders.Text())
		for number := len(tokens) + 1; number <= devices; number++ {
			tokens = append(tokens, tokenOf(number))
		}
		startedAt := time.Now()
		if err := push(client, topic, tokens[:devices]); err != nil {
			answer.Encode(map[string]any{"error": err.Error()})
		} else {
			answer.Encode(map[string]any{"seconds": time.Since(startedAt).Seconds()})
		}
	}
}
