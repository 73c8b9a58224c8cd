package rpc

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bullpenhq/bullpen/libs/config"
)

const (
	// MinKeyBytes is the least a principal key may have: the length of the hash it is used with.
	MinKeyBytes = 32
	// DefaultTTL is how long a signed principal is accepted when the signer does not say.
	DefaultTTL = 5 * time.Minute

	// maxTTL bounds what any signer may ask for.
	maxTTL = time.Hour
	// clockSkew is how far two machines' clocks may lie apart.
	clockSkew = 30 * time.Second
	// maxTokenBytes is checked before anything is decoded.
	maxTokenBytes = 8 << 10
	// tokenPrefix names the format and is part of what is signed.
	tokenPrefix = "p1."
)

// Keys signs principals and verifies them, with HMAC-SHA256. The first key signs and all verify, so that a key is rotated by
// putting the new one second everywhere, then first, then removing the old one. Safe for concurrent use.
type Keys struct {
	secrets [][]byte
	now     func() time.Time
}

// NewKeys refuses an empty list and any key shorter than [MinKeyBytes].
func NewKeys(secrets ...config.Secret) (*Keys, error) {
	if len(secrets) == 0 {
		return nil, errors.New("at least one principal key is needed")
	}
	k := &Keys{now: time.Now}
	for i, secret := range secrets {
		if n := len(secret.Reveal()); n < MinKeyBytes {
			return nil, fmt.Errorf("principal key %d has %d bytes; a key must have at least %d", i+1, n, MinKeyBytes)
		}
		k.secrets = append(k.secrets, []byte(secret.Reveal()))
	}
	return k, nil
}

// At answers the same keys with another clock for Sign.
func (k *Keys) At(now func() time.Time) *Keys {
	return &Keys{secrets: k.secrets, now: now}
}

// Sign answers a header value that carries claims until ttl has passed; a ttl of zero means [DefaultTTL], and more than an
// hour is cut to an hour. The times in claims are ignored; claims itself is not changed.
func (k *Keys) Sign(claims *Principal, ttl time.Duration) string {
	if ttl <= 0 {
		ttl = DefaultTTL
	}
	now := k.now()
	signed := proto.CloneOf(claims)
	signed.IssueTime = timestamppb.New(now)
	signed.ExpireTime = timestamppb.New(now.Add(min(ttl, maxTTL)))
	payload, err := proto.Marshal(signed)
	if err != nil {
		// Only invalid UTF-8 can fail here. An unsigned call is refused by whoever receives it.
		return ""
	}
	body := tokenPrefix + base64.RawURLEncoding.EncodeToString(payload)
	return body + "." + base64.RawURLEncoding.EncodeToString(sign(k.secrets[0], body))
}

// Verify answers the claims that token carries, if one of the keys signed it and now lies within its times, give or take 30
// seconds. Its errors are fit for the caller to read.
func (k *Keys) Verify(token string, now time.Time) (*Principal, error) {
	if len(token) > maxTokenBytes {
		return nil, fmt.Errorf("the signed principal is larger than %d bytes", maxTokenBytes)
	}
	cut := strings.LastIndexByte(token, '.')
	if cut < len(tokenPrefix) || !strings.HasPrefix(token, tokenPrefix) {
		return nil, errors.New("the principal is not in the form that services sign")
	}
	body := token[:cut]
	mac, err := base64.RawURLEncoding.DecodeString(token[cut+1:])
	if err != nil || !k.signed(body, mac) {
		return nil, errors.New("the principal's signature is not one of ours")
	}
	payload, err := base64.RawURLEncoding.DecodeString(body[len(tokenPrefix):])
	if err != nil {
		return nil, errors.New("the principal is not in the form that services sign")
	}
	claims := &Principal{}
	if err := proto.Unmarshal(payload, claims); err != nil {
		return nil, errors.New("the principal is not in the form that services sign")
	}
	if err := checkIdentity(claims); err != nil {
		return nil, err
	}
	if err := checkTimes(claims, now); err != nil {
		return nil, err
	}
	return claims, nil
}

// MAC authenticates data for one purpose, under the first key. A MAC of one purpose confirms nothing for another, and never a
// principal.
func (k *Keys) MAC(purpose string, data []byte) []byte {
	return macOf(k.secrets[0], purpose, data)
}

// Confirms reports whether mac is what [Keys.MAC] answers for the same purpose and data under any of the keys.
func (k *Keys) Confirms(purpose string, data, mac []byte) bool {
	found := false
	for _, secret := range k.secrets {
		if hmac.Equal(mac, macOf(secret, purpose, data)) {
			found = true
		}
	}
	return found
}

// macOf takes a key of its own for each purpose.
func macOf(secret []byte, purpose string, data []byte) []byte {
	h := hmac.New(sha256.New, sign(secret, "mac for "+purpose))
	h.Write(data)
	return h.Sum(nil)
}

// signed tries every key, whichever fits, so that the time taken does not tell which one did.
func (k *Keys) signed(body string, mac []byte) bool {
	found := false
	for _, secret := range k.secrets {
		if hmac.Equal(mac, sign(secret, body)) {
			found = true
		}
	}
	return found
}

func sign(secret []byte, body string) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(body))
	return h.Sum(nil)
}

// checkIdentity refuses claims that no handler should have to think of: of a kind that this build does not know, or of a
// service that another one speaks for. Seats, persons and operators are spoken for; a service signs for itself.
func checkIdentity(claims *Principal) error {
	switch kind := claims.GetKind(); {
	case kind == "" || claims.GetId() == "":
		return errors.New("the principal names nobody")
	case kind == KindService && claims.GetIssuer() != claims.GetId():
		return fmt.Errorf("the service %q is spoken for by %q, and a service signs for itself", claims.GetId(), claims.GetIssuer())
	case kind != KindService && kind != KindSeat && kind != KindPerson && kind != KindOperator:
		return fmt.Errorf("the principal is of the unknown kind %q", kind)
	}
	return nil
}

func checkTimes(claims *Principal, now time.Time) error {
	issued, expires := claims.GetIssueTime().AsTime(), claims.GetExpireTime().AsTime()
	switch {
	case expires.Sub(issued) > maxTTL:
		return fmt.Errorf("the principal was signed for longer than %s", maxTTL)
	case issued.After(now.Add(clockSkew)):
		return fmt.Errorf("the principal was signed in the future, at %s: a clock is wrong", issued.Format(time.RFC3339))
	case !expires.After(now.Add(-clockSkew)):
		return fmt.Errorf("the principal expired at %s", expires.Format(time.RFC3339))
	}
	return nil
}

// withIssuer answers a copy of claims that names who signs.
func withIssuer(claims *Principal, issuer string) *Principal {
	signed := proto.CloneOf(claims)
	signed.Issuer = issuer
	return signed
}
