package tracker

import (
	"flag"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/services/tracker/internal/object"
)

// Config are the service's settings.
type Config struct {
	// S3 says where files' bytes go; without an endpoint they stand in Postgres.
	S3 object.S3Options
	// SearchDir keeps the search index; empty for a folder that goes with the process.
	SearchDir string
	// NoticeDays is how long notices of changes are kept.
	NoticeDays int
}

// Bounds of NoticeDays.
const (
	minNoticeDays     = 30
	defaultNoticeDays = 365
	maxNoticeDays     = 3650
)

// RegisterFlags adds the settings to fs.
func (c *Config) RegisterFlags(prefix string, fs *flag.FlagSet) {
	fs.IntVar(&c.NoticeDays, prefix+"notice-days", defaultNoticeDays, "How many days people's notices of changes are kept, 30 to 3650. History is kept for ever.")
	fs.StringVar(&c.SearchDir, prefix+"search-dir", "", "Folder for the search index, one for each process, so that a start does not have to build it. Empty for a temporary one. What is in it is derived and may be deleted when the process is down.")
	fs.StringVar(&c.S3.Endpoint, prefix+"s3-endpoint", "", "Address of an S3-compatible store that keeps the content of projects' files, such as https://s3.eu-west-1.amazonaws.com. Empty to keep it in Postgres.")
	fs.StringVar(&c.S3.Bucket, prefix+"s3-bucket", "", "Bucket for files, which must be there.")
	fs.StringVar(&c.S3.Prefix, prefix+"s3-prefix", "", "What the key of every object begins with, such as bullpen/.")
	fs.StringVar(&c.S3.Region, prefix+"s3-region", "us-east-1", "Region of the bucket.")
	fs.StringVar(&c.S3.AccessKey, prefix+"s3-access-key", "", "Access key of the store.")
	config.SecretVar(fs, &c.S3.SecretKey, prefix+"s3-secret-key", "Secret key of the store.")
}

// Validate refuses settings that cannot work.
func (c *Config) Validate() error {
	if c.NoticeDays < minNoticeDays || c.NoticeDays > maxNoticeDays {
		return config.Invalid("tracker.notice-days", "must be %d to %d, not %d", minNoticeDays, maxNoticeDays, c.NoticeDays)
	}
	if c.S3.Endpoint == "" {
		if c.S3.Bucket != "" {
			return config.Invalid("tracker.s3-bucket", "is given without s3-endpoint, so nothing would be kept there")
		}
		return nil
	}
	if field, problem := c.S3.Validate(); problem != "" {
		return config.Invalid("tracker."+field, "%s", problem)
	}
	return nil
}
