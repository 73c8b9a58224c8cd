package document

import "strings"

// The grants by which a token for a server is had.
const (
	grantClientCredentials = "client_credentials"
	grantAuthorizationCode = "authorization_code"
)

// authorization reads how a token for a server is had; nil when the document does not say.
func (r *reader) authorization(o, headers *object) *Authorization {
	if !o.given {
		return nil
	}
	for _, e := range headers.order {
		if strings.EqualFold(e.Key, "Authorization") {
			r.add(headers.place(e), KindDuplicate, "is what the server's `authorization` answers; keep one of them")
		}
	}
	grant := o.required("grant")
	grants := []string{grantClientCredentials, grantAuthorizationCode}
	if grant.v != "" && !contains(grants, grant.v) {
		r.add(grant.at, KindValue, "%s is not one of %s", quote(grant.v), list(grants))
	}
	id, secret := o.text("client_id"), o.text("client_secret")
	r.secretOnly(secret)
	if grant.v == grantClientCredentials {
		for _, v := range []value[string]{id, secret} {
			if v.v == "" {
				r.add(v.at, KindRequired, "is required for `client_credentials`: the client proves itself by it, and nobody consents")
			}
		}
	} else if secret.given && id.v == "" {
		r.add(id.at, KindRequired, "is required beside a client_secret: a secret is one client's")
	}
	out := &Authorization{Grant: grant.v, ClientID: id.v, ClientSecret: secret.v}
	for _, scope := range o.texts("scopes") {
		// RFC 6749, section 3.3.
		r.matching(scope, "^[\\x21\\x23-\\x5b\\x5d-\\x7e]{1,255}$", "one scope, without blanks and quotes")
		out.Scopes = append(out.Scopes, scope.v)
	}
	o.done()
	return out
}

// protocol reads what a server speaks.
func (r *reader) protocol(o *object, transport string) string {
	v := o.choice("protocol", ProtocolAuto, ProtocolAuto, ProtocolModern, ProtocolLegacy)
	if v.v == ProtocolModern && transport == TransportSSE {
		r.add(v.at, KindValue, "`sse` is a transport of the older protocol; say `legacy` or leave it out, or say `transport: http`")
	}
	return v.v
}
