package dispatch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dispatch"
)

func TestAModelReadsTextAndALineForTheRest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][2]string{
		"texts are joined": {`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, "a\nb"},
		"an image is described": {
			`{"content":[{"type":"text","text":"see"},{"type":"image","mimeType":"image/png","data":"aGVsbG8="}]}`, "see\n[image: image/png, 5 bytes]",
		},
		"audio without a type is described": {`{"content":[{"type":"audio","data":""}]}`, "[audio: of unknown type, 0 bytes]"},
		"a link is described":               {`{"content":[{"type":"resource_link","uri":"file:///a","name":"A"}]}`, "[link: file:///a (A)]"},
		"an embedded text is text":          {`{"content":[{"type":"resource","resource":{"uri":"x:1","text":"inside"}}],"structuredContent":{"a":1}}`, "inside"},
		"embedded bytes are described":      {`{"content":[{"type":"resource","resource":{"uri":"x:1","blob":"aGk="}}]}`, "[resource: x:1, of unknown type, 2 bytes]"},
		"structured content stands in for missing text": {
			`{"content":[],"structuredContent":{"id":9007199254740993}}`, `{"id":9007199254740993}`,
		},
		"structured content is not said twice": {`{"content":[{"type":"text","text":"{}"}],"structuredContent":{}}`, "{}"},
		"an unknown type is named":             {`{"content":[{"type":"hologram"}]}`, `[content of the unknown type "hologram"]`},
		"no content is no text":                {`{"content":[]}`, ""},
	} {
		require.Equal(t, c[1], dispatch.Text(c[0]), name)
	}
}
