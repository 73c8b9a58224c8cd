package hygiene

import (
	"regexp"
	"strings"
)

// shape is a kind of secret that can be told from its form.
type shape struct {
	kind string
	// anchors are texts that every secret of the kind begins with; only where one stands is the pattern tried, which keeps a
	// megabyte of harmless text cheap.
	anchors []string
	// pattern begins at the anchor. Its group, or all of it, is the secret.
	pattern *regexp.Regexp
	// needs is a text without which there is no secret of the kind anywhere; empty needs nothing.
	needs string
	// inWord allows a letter, a digit, `_` or `-` right before the anchor.
	inWord bool
}

// shapes answers what is looked for, in this order: a private key holds lines that other patterns would tear apart.
func shapes() []shape {
	return []shape{
		{"private_key", []string{"-----BEGIN "}, regexp.MustCompile(`^-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`), "PRIVATE KEY-----", true},
		{"url_credential", []string{"://"}, regexp.MustCompile(`^://[^\s/?#@:"'<>]*:([^\s/?#@"'<>]+)@`), "@", true},
		{"password", []string{"password=", "Password=", "PASSWORD=", "passwd=", "pwd="}, regexp.MustCompile(`^[A-Za-z]+=["']?([^\s"'&;,]+)`), "", true},
		{"github_token", []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, regexp.MustCompile(`^gh[pousr]_[A-Za-z0-9]{30,}`), "", false},
		{"github_token", []string{"github_pat_"}, regexp.MustCompile(`^github_pat_[A-Za-z0-9_]{22,}`), "", false},
		{"gitlab_token", []string{"glpat-"}, regexp.MustCompile(`^glpat-[A-Za-z0-9_-]{20,}`), "", false},
		{"slack_token", []string{"xoxb-", "xoxp-", "xoxs-", "xoxa-", "xoxr-", "xapp-"}, regexp.MustCompile(`^(?:xox[bpsar]|xapp)-[A-Za-z0-9-]{10,}`), "", false},
		{"aws_key", []string{"AKIA", "ASIA"}, regexp.MustCompile(`^A[KS]IA[0-9A-Z]{16}\b`), "", false},
		{"google_key", []string{"AIza"}, regexp.MustCompile(`^AIza[0-9A-Za-z_-]{35}`), "", false},
		{"stripe_key", []string{"sk_live_", "sk_test_", "rk_live_", "rk_test_"}, regexp.MustCompile(`^[sr]k_(?:live|test)_[0-9A-Za-z]{16,}`), "", false},
		{"api_key", []string{"sk-"}, regexp.MustCompile(`^sk-[A-Za-z0-9_-]{20,}`), "", false},
		{"jwt", []string{"eyJ"}, regexp.MustCompile(`^eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`), "", false},
	}
}

// maxRounds bounds the search for text that no shape changes. Two are enough for all but adversaries.
const maxRounds = 8

// redact replaces secrets until there is none left: taking one out can bare another.
func (c *Cleaner) redact(text string) string {
	for range maxRounds {
		before := text
		for i := range c.shapes {
			text = c.shapes[i].redact(text)
		}
		if text == before {
			break
		}
	}
	return text
}

func (s *shape) redact(text string) string {
	if !strings.Contains(text, s.needs) {
		return text
	}
	for _, anchor := range s.anchors {
		if strings.Contains(text, anchor) {
			text = s.redactAt(text, anchor)
		}
	}
	return text
}

// redactAt answers text itself when nothing at the anchor is a secret.
func (s *shape) redactAt(text, anchor string) string {
	var b strings.Builder
	done, from := 0, 0
	for {
		at := strings.Index(text[from:], anchor)
		if at < 0 {
			break
		}
		at += from
		from = at + len(anchor)
		if !s.inWord && at > 0 && wordByte(text[at-1]) {
			continue
		}
		match := s.pattern.FindStringSubmatchIndex(text[at:])
		if match == nil {
			continue
		}
		begin, end := at+match[0], at+match[1]
		if len(match) > 2 {
			begin, end = at+match[2], at+match[3]
		}
		b.WriteString(text[done:begin])
		b.WriteString("[REDACTED:" + s.kind + "]")
		done, from = end, max(from, end)
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}
