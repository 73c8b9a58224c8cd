package authorize

import (
	"encoding/json"
	"errors"
	"html/template"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

const (
	// CallbackPath is where an issuer sends a browser back to.
	CallbackPath = "/mcp-authorization/callback"
	// DocumentPath is where issuers read who we are.
	DocumentPath = "/mcp-authorization/client.json"
	maxCallback  = 16 << 10
)

// Routes serves the two addresses. They ask for no credentials: a browser has none of ours, and the state says enough.
func (a *Authorizer) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET "+CallbackPath, a.callback)
	mux.HandleFunc("GET "+DocumentPath, a.document)
}

// callback takes an issuer's answer and says in words what came of it. Nothing of the answer is repeated but an issuer's reason.
func (a *Authorizer) callback(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet:
		// A look at the head must not use up the state.
		w.Header().Set("Allow", http.MethodGet)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case len(r.URL.RawQuery) > maxCallback:
		show(w, http.StatusRequestURITooLong, "Not authorised", "The answer is longer than any that is expected.")
		return
	}
	done, err := a.Complete(r.Context(), r.URL.Query())
	whom := done.Server
	if done.Seat != "" {
		whom += " as " + done.Seat
	}
	var refused *Refused
	switch {
	case err == nil:
		show(w, http.StatusOK, "Authorised", "The MCP server "+whom+" can be used now. You may close this page.")
	case errors.As(err, &refused) && whom == "":
		show(w, http.StatusBadRequest, "Not authorised", "Nothing was changed: "+refused.Error()+". Begin again from the list of MCP servers.")
	case errors.As(err, &refused):
		a.options.Log.Warn("mcp_server_not_authorized", "mcp_server", done.Server, "seat", done.Seat, "reason", refused.Error())
		show(w, http.StatusBadRequest, "Not authorised", "The MCP server "+whom+" cannot be used: "+refused.Error()+". Begin again from the list of MCP servers.")
	default:
		a.options.Log.Error("a consent could not be taken", "mcp_server", done.Server, "seat", done.Seat, "error", err)
		show(w, http.StatusServiceUnavailable, "Not authorised", "The answer could not be taken at the moment. Begin again from the list of MCP servers.")
	}
}

func show(w http.ResponseWriter, status int, title, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("Referrer-Policy", "no-referrer") // the address has the code in it
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	page := template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}} · Bullpen</title></head>
<body><h1>{{.Title}}</h1><p>{{.Text}}</p></body></html>
`))
	_ = page.Execute(w, struct{ Title, Text string }{title, text}) // whoever left does not read it
}

// document is our client's metadata, for issuers that take an address for a name.
func (a *Authorizer) document(w http.ResponseWriter, _ *http.Request) {
	redirect := a.redirectURI()
	data, err := json.Marshal(struct {
		ClientID string `json:"client_id"`
		*oauthex.ClientRegistrationMetadata
	}{a.options.BaseURL() + DocumentPath, description(redirect, noMethod)})
	if err != nil {
		http.Error(w, "the document cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=300")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(data)
}
