package act_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/door"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/act"
)

// broken is a door that nobody should come through, or that breaks.
type broken struct{}

func (broken) Call(context.Context, *rpc.Principal, door.Request) (*door.Answer, error) {
	panic("the door broke")
}

// half is a body that does not arrive.
type half struct{}

func (half) Read([]byte) (int, error) { return 0, errors.New("the connection broke") }

func handler(t *testing.T, draining bool) http.Handler {
	t.Helper()
	tools, err := catalogue.Load()
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("POST /operator/act/{tool}", act.New(act.Options{
		Door: broken{}, Catalogue: tools, Log: slog.New(slog.DiscardHandler), Draining: func() bool { return draining },
		Company: func(context.Context, string) *companyv1.Company {
			return &companyv1.Company{Seats: []*companyv1.Seat{{Handle: "ines", Kind: "human"}, {Handle: "ada", Kind: "agent"}}}
		},
		Identify: func(_ context.Context, header http.Header) (*rpc.Principal, error) {
			return &rpc.Principal{Kind: rpc.KindOperator, Id: "t", Seat: header.Get("Seat")}, nil
		},
	}))
	return mux
}

func post(h http.Handler, seat string, body io.Reader) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, "/operator/act/create_work_item", body)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Seat", seat)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	return w
}

func TestAHandlerThatIsStoppedTakesNothing(t *testing.T) {
	t.Parallel()
	w := post(handler(t, true), "ines", strings.NewReader(`{}`))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "30", w.Header().Get("Retry-After"))
	require.Contains(t, w.Body.String(), `"error":"draining"`)
}

func TestABodyThatDoesNotArriveIsSaidToBeUnreadable(t *testing.T) {
	t.Parallel()
	w := post(handler(t, false), "ines", half{})
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), `"error":"unreadable_body"`)
}

func TestAHandlerThatBreaksSaysThatTheWriteIsInDoubt(t *testing.T) {
	t.Parallel()
	w := post(handler(t, false), "ines", strings.NewReader(`{"request_id":"01935f3e-8f3a-7c4e-9c3a-0123456789ab","args":{"title":"x"}}`))
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.Contains(t, w.Body.String(), `"error":"internal_error"`)
	require.Contains(t, w.Body.String(), `"outcome":"unknown"`)
}

func TestATokenOfAnAgentsSeatIsNobodys(t *testing.T) {
	t.Parallel()
	for _, seat := range []string{"", "ada", "gone"} {
		w := post(handler(t, false), seat, strings.NewReader(`{}`))
		require.Equal(t, http.StatusForbidden, w.Code, seat)
		require.Contains(t, w.Body.String(), `"error":"unbound"`, seat)
		require.Contains(t, w.Body.String(), `"hint":`, seat)
	}
}
