package engine

import (
	"context"
	"sync"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
)

// catalogues keep each seat's last list of tools, so that a turn begins without thousands of them being sent again. Lists are
// shared: nobody changes one. The zero value is empty.
type catalogues struct {
	mu   sync.Mutex
	kept map[string]*toolregistryv1.ListToolsResponse
}

// of answers a seat's list as it is now.
func (c *catalogues) of(ctx context.Context, tools Tools, seat string) (*toolregistryv1.ListToolsResponse, error) {
	last := c.last(seat)
	listed, err := tools.ListTools(ctx, &toolregistryv1.ListToolsRequest{Seat: seat, KnownDigest: last.GetDigest()})
	switch {
	case err != nil:
		return nil, err
	case listed.GetUnchanged() && last != nil:
		return last, nil
	}
	c.keep(seat, listed)
	return listed, nil
}

func (c *catalogues) last(seat string) *toolregistryv1.ListToolsResponse {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept[seat]
}

func (c *catalogues) keep(seat string, listed *toolregistryv1.ListToolsResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[string]*toolregistryv1.ListToolsResponse{}
	}
	c.kept[seat] = listed
}
