package authorize

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// turnedDown is an issuer's word that it gives no token, and that asking again changes nothing.
type turnedDown struct{ code, text string }

// Error answers what the issuer said.
func (t *turnedDown) Error() string { return t.text }

// exchange asks an issuer for a token. t says where, as whom and for what, and is not changed.
func (acc *Access) exchange(ctx context.Context, t *token, form url.Values) (*token, error) {
	form.Set("resource", t.Resource)
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	prove(t.Client, form, header)
	status, data, err := acc.post(ctx, t.Endpoint, header, []byte(form.Encode()))
	if err != nil {
		return nil, refuse("its authorization server %s could not be asked for a token: %s", quoted(t.Issuer), unwrapped(err)).because(err)
	}
	var answer struct {
		Access  string  `json:"access_token"`
		Type    string  `json:"token_type"`
		Refresh string  `json:"refresh_token"`
		Seconds seconds `json:"expires_in"`
		Scope   string  `json:"scope"`
	}
	if status != http.StatusOK {
		return nil, acc.failed(t, status, data)
	}
	if json.Unmarshal(data, &answer) != nil || answer.Access == "" || !strings.EqualFold(answer.Type, "bearer") || !visible(answer.Access) {
		return nil, refuse("its authorization server %s answered with no token that we can show", quoted(t.Issuer))
	}
	next := *t
	next.Access, next.Granted, next.Until = answer.Access, t.Asked, time.Time{}
	if answer.Refresh != "" {
		next.Refresh = answer.Refresh
	}
	if answer.Scope != "" {
		next.Granted = strings.Fields(answer.Scope)
	}
	if answer.Seconds > 0 {
		next.Until = acc.authorizer.options.Now().Add(time.Duration(answer.Seconds) * time.Second)
	}
	acc.hide(next.Access, next.Refresh)
	return &next, nil
}

// failed tells an issuer's refusal from its trouble.
func (acc *Access) failed(t *token, status int, data []byte) error {
	text := fmt.Sprintf("its authorization server %s gives no token: %s", quoted(t.Issuer), failureOf(status, data))
	if status < http.StatusBadRequest || status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		return refuse("%s", text)
	}
	return refuse("%s", text).because(&turnedDown{code: codeOf(data), text: text})
}

// seconds is a number, which some issuers write as a text.
type seconds int64

// UnmarshalJSON implements [json.Unmarshaler].
func (s *seconds) UnmarshalJSON(data []byte) error {
	const year = 366 * 24 * 3600
	var n json.Number
	if err := json.Unmarshal(bytes.Trim(data, `"`), &n); err != nil {
		return nil // an end that cannot be read is one that was not said
	}
	if f, err := n.Float64(); err == nil {
		*s = seconds(min(max(f, 0), year))
	}
	return nil
}

// visible reports whether a token can stand in a header.
func visible(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// prove puts the client's proof where its method says.
func prove(c client, form url.Values, header http.Header) {
	switch c.Method {
	case basicMethod:
		pair := url.QueryEscape(c.ID) + ":" + url.QueryEscape(c.Secret)
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	case postMethod:
		form.Set("client_secret", c.Secret)
		form.Set("client_id", c.ID)
	default:
		form.Set("client_id", c.ID)
	}
}

// post sends a body and reads the whole answer.
func (acc *Access) post(ctx context.Context, endpoint string, header http.Header, body []byte) (status int, data []byte, err error) {
	u, err := url.Parse(endpoint)
	if err != nil || !secure(u) || u.User != nil {
		return 0, nil, errors.New("its address is not https")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, errors.New("its address cannot be asked")
	}
	request.Header = header
	request.Header.Set("Accept", "application/json")
	response, err := acc.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	data, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		err = fmt.Errorf("it answered with more than %d bytes", maxAnswer)
	}
	return response.StatusCode, data, err
}

type oauthFailure struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

func codeOf(data []byte) string {
	var f oauthFailure
	_ = json.Unmarshal(data, &f)
	return f.Code
}

// failureOf answers what an issuer says of a refusal, as far as it says it in the way of OAuth.
func failureOf(status int, data []byte) string {
	var f oauthFailure
	if json.Unmarshal(data, &f) != nil || f.Code == "" {
		return fmt.Sprintf("it answered with status %d", status)
	}
	return described(f)
}

func described(f oauthFailure) string {
	if f.Description == "" {
		return quoted(f.Code)
	}
	return quoted(f.Code) + ", " + quoted(f.Description)
}
