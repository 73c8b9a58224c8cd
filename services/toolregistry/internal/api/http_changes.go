package api

import (
	"encoding/json"
	"net/http"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
)

// changeRoutes adds `GET /tools/changes` and `POST /tools/changes/{server}/{tool}/accept`. A tool's name may hold a slash, written
// `%2F` there.
func changeRoutes(mux *http.ServeMux, client toolregistryv1connect.ToolRegistryServiceClient) {
	mux.HandleFunc("GET /tools/changes", func(w http.ResponseWriter, r *http.Request) {
		answer, err := client.ListToolChanges(withCredentials(r), &toolregistryv1.ListToolChangesRequest{Server: r.URL.Query().Get("server")})
		if err != nil {
			refuse(w, err)
			return
		}
		list := changesJSON{Changes: []changeJSON{}}
		for _, c := range answer.GetChanges() {
			list.Changes = append(list.Changes, changeJSON{
				Server: c.GetServer(), Tool: c.GetTool(), Known: raw(c.GetKnownJson()), Current: raw(c.GetCurrentJson()), Digest: c.GetDigest(), Held: c.GetHeld(),
			})
		}
		write(w, http.StatusOK, list)
	})
	mux.HandleFunc("POST /tools/changes/{server}/{tool}/accept", func(w http.ResponseWriter, r *http.Request) {
		digest, ok := textOf(w, r, "digest")
		if !ok {
			return
		}
		if _, err := client.AcceptToolChange(withCredentials(r), &toolregistryv1.AcceptToolChangeRequest{
			Server: r.PathValue("server"), Tool: r.PathValue("tool"), Digest: digest,
		}); err != nil {
			refuse(w, err)
			return
		}
		write(w, http.StatusOK, struct{}{})
	})
}

type changesJSON struct {
	Changes []changeJSON `json:"changes"`
}

// changeJSON has the definitions as they are kept; the known one is null when it is not there any more.
type changeJSON struct {
	Server  string          `json:"server"`
	Tool    string          `json:"tool"`
	Known   json.RawMessage `json:"known"`
	Current json.RawMessage `json:"current"`
	Digest  string          `json:"digest"`
	Held    bool            `json:"held"`
}
