package toolregistry

import (
	"context"
	"sync"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	follower "github.com/bullpenhq/bullpen/libs/follow"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// revisionTopic announces activations.
const revisionTopic = "bullpen.company.revision.v1"

// lookAgain is the least time between looks at the company that calls cause.
const lookAgain = time.Second

// company is the active revision, as far as it is known here.
type company struct {
	follower *follower.Follower[*companyv1.Company]
	now      func() time.Time

	mu     sync.Mutex
	looked time.Time
}

// follow makes a company that is not known until it runs, or until somebody asks.
func follow(d Deps) *company {
	client := companyv1connect.NewCompanyServiceClient(d.Client("company"))
	return &company{now: d.Now, follower: follower.New(follower.Options[*companyv1.Company]{
		Bus: d.Bus, Topic: revisionTopic, Group: Name + "-company-" + d.Node, Log: d.Log,
		Load: func(ctx context.Context) (*companyv1.Company, error) {
			answer, err := client.GetCompany(ctx, &companyv1.GetCompanyRequest{})
			if f := rpc.FromError(err); f != nil {
				if f.Class == fault.NotFound {
					return nil, nil
				}
				return nil, f
			}
			return answer.GetCompany(), nil
		},
	})}
}

func (c *company) run(ctx context.Context) error { return c.follower.Run(ctx) }

// known answers the company as it was last heard of, without a look; nil when none is active.
func (c *company) known() *companyv1.Company {
	current, _ := c.follower.Current()
	return current
}

// at answers the company, nil when none is active. A turn that runs on a revision which is not the one known here may be ahead of
// the announcement, so it causes a look, at most one a second. Before the first answer everybody looks.
func (c *company) at(ctx context.Context, revision string) *companyv1.Company {
	current, loaded := c.follower.Current()
	if current != nil && (revision == "" || revision == current.GetRevisionId()) {
		return current
	}
	if !loaded || c.mayLook() {
		if err := c.follower.Refresh(ctx); err != nil {
			return current // the follower has said why
		}
		current, _ = c.follower.Current()
	}
	return current
}

// asked answers the company that is active at this moment, nil when none is. Faults: unavailable, when nobody can tell.
func (c *company) asked(ctx context.Context) (*companyv1.Company, error) {
	if err := c.follower.Refresh(ctx); err != nil {
		return nil, fault.New(fault.Unavailable, "The company cannot be asked what it allows now; trying again later may work.").WithCause(err)
	}
	return c.known(), nil
}

func (c *company) mayLook() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.looked) >= lookAgain {
		c.looked = now
		return true
	}
	return false
}
