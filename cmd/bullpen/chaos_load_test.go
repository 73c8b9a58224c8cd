package main_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/story"
	"github.com/bullpenhq/bullpen/doubles/githubdouble"
	"github.com/bullpenhq/bullpen/doubles/signed"
	"github.com/bullpenhq/bullpen/doubles/slackdouble"
)

const (
	crowdRepository = "crowd/shop"
	// crowdIssues is how many issues each seat has. They are its own: who was asked on an issue follows it.
	crowdIssues   = 3
	crowdChannels = 3
	// threads is how many threads each channel has at a time; with more, each question would be a turn of its own.
	threads = 4

	// vendorPatience is how long a vendor waits for an answer, and vendorGivesUp how long it goes on sending.
	vendorPatience = 3 * time.Second
	vendorGivesUp  = time.Minute
)

// question is one webhook: who was asked what, and where the answer belongs.
type question struct {
	name string
	seat int
	// conversation is the key that the suite knows the place by.
	conversation string
	path         string
	webhook      signed.Webhook
}

// load asks questions as the vendors would, and sends again what is not acknowledged.
type load struct {
	webhooks string
	vendors  *story.Vendors
	random   *rand.Rand
	client   *http.Client
	roots    map[string]string

	sending sync.WaitGroup
	again   atomic.Int64

	mu sync.Mutex
	// acknowledged questions by name.
	acknowledged map[string]question
	refused      []string
}

func newLoad(webhooks string, vendors *story.Vendors, seed uint64) *load {
	return &load{
		webhooks: webhooks, vendors: vendors, random: rand.New(rand.NewPCG(seed, 1)), roots: map[string]string{},
		client: &http.Client{Timeout: vendorPatience}, acknowledged: map[string]question{},
	}
}

// run asks a question at each tick until ctx ends, and then waits until every one is acknowledged or given up.
func (l *load) run(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for number := 1; ; number++ {
		select {
		case <-ctx.Done():
			l.sending.Wait()
			return
		case <-ticker.C:
		}
		q := l.question(number)
		// Vendors like to send what was acknowledged already.
		twice := number%10 == 0
		l.sending.Go(func() {
			if l.send(context.WithoutCancel(ctx), q) && twice {
				l.send(context.WithoutCancel(ctx), q)
			}
		})
	}
}

func (l *load) question(number int) question {
	seat := l.random.IntN(crowd)
	q := question{name: fmt.Sprintf("q-%04d", number), seat: seat}
	if number%2 == 0 {
		return l.onGitHub(q, 1+seat*crowdIssues+l.random.IntN(crowdIssues))
	}
	return l.onSlack(q, l.random.IntN(crowdChannels), l.random.IntN(threads))
}

func (l *load) onGitHub(q question, issue int) question {
	body := fmt.Sprintf("@%s %s: can you look?", crowdLogin(q.seat), q.name)
	id := l.vendors.GitHub.Say(crowdRepository, issue, "ada-reis", body)
	q.conversation = fmt.Sprintf("github:%s#%d", crowdRepository, issue)
	q.path = "/webhooks/github"
	q.webhook = githubdouble.Webhook(githubdouble.Envelope{Secret: crowdGitHubSecret}, githubdouble.Happening{
		Kind: "issue_comment", Repo: crowdRepository, Number: issue, Title: "Customers cannot pay", Sender: "ada-reis", Author: "ada-reis",
		ID: id, Body: body, At: time.Now(),
	})
	return q
}

func (l *load) onSlack(q question, channel, thread int) question {
	where, place := fmt.Sprintf("C0CROWD%d", channel), fmt.Sprintf("%d/%d", channel, thread)
	text := fmt.Sprintf("<@%s> %s: can you look?", crowdSlackUser(q.seat), q.name)
	root := l.roots[place]
	ts := l.vendors.Slack.Say(where, root, "U0ADA", text)
	happening := slackdouble.Happening{
		Type: "app_mention", EventID: "Ev-" + q.name, TeamID: crowdTeam, AppID: fmt.Sprintf("A0CROWD%d", q.seat),
		BotUserID: crowdSlackUser(q.seat), Channel: where, TS: ts, ThreadTS: root, User: "U0ADA", Text: text,
	}
	if root == "" {
		root = ts
		l.roots[place] = root
	}
	q.conversation = fmt.Sprintf("slack:%s/%s/%s", crowdTeam, where, root)
	q.path = "/webhooks/slack/" + crowdApp(q.seat)
	q.webhook = slackdouble.Event(crowdSlackSecret, time.Now(), happening)
	return q
}

// send delivers a webhook, again and again until it is acknowledged. It reports whether it was.
func (l *load) send(ctx context.Context, q question) bool {
	ctx, cancel := context.WithTimeout(ctx, vendorGivesUp)
	defer cancel()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		status, err := l.post(ctx, q)
		if err == nil && status/100 == 2 {
			l.mu.Lock()
			l.acknowledged[q.name] = q
			l.mu.Unlock()
			return true
		}
		l.again.Add(1)
		pause := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			pause.Stop()
			l.mu.Lock()
			l.refused = append(l.refused, fmt.Sprintf("%s: status %d, %v", q.name, status, err))
			l.mu.Unlock()
			return false
		case <-pause.C:
		}
	}
}

func (l *load) post(ctx context.Context, q question) (int, error) {
	request, err := q.webhook.Request(ctx, l.webhooks+q.path)
	if err != nil {
		return 0, err
	}
	response, err := l.client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}
