package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/bullpenhq/bullpen/libs/config"
)

// S3Options say where a bucket is and how to reach it.
type S3Options struct {
	// Endpoint is the store's address, such as https://s3.eu-west-1.amazonaws.com.
	Endpoint string
	Bucket   string
	// Prefix stands before every key; it may be empty.
	Prefix    string
	Region    string
	AccessKey string
	SecretKey config.Secret
}

// Validate answers the setting that cannot work and why; two empty texts when all can.
func (o S3Options) Validate() (setting, problem string) {
	address, err := url.Parse(o.Endpoint)
	switch {
	case err != nil || address.Host == "" || address.User != nil || (address.Scheme != "http" && address.Scheme != "https") || strings.Trim(address.Path, "/") != "":
		return "s3-endpoint", "must be an http or https address without a user and without a path"
	case o.Bucket == "":
		return "s3-bucket", "is required together with s3-endpoint"
	case o.AccessKey == "":
		return "s3-access-key", "is required together with s3-endpoint"
	case o.SecretKey == "":
		return "s3-secret-key", "is required together with s3-endpoint"
	}
	return "", ""
}

// S3 keeps objects in a bucket of a store that speaks that protocol.
type S3 struct {
	client *minio.Client
	o      S3Options
}

// NewS3 answers a store on a bucket that is there. It calls nobody yet.
func NewS3(o S3Options) (*S3, error) {
	if setting, problem := o.Validate(); problem != "" {
		return nil, fmt.Errorf("%s %s", setting, problem)
	}
	address, err := url.Parse(o.Endpoint)
	if err != nil {
		return nil, err
	}
	client, err := minio.New(address.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(o.AccessKey, o.SecretKey.Reveal(), ""),
		Secure: address.Scheme == "https", Region: o.Region, BucketLookup: minio.BucketLookupAuto,
	})
	if err != nil {
		return nil, fmt.Errorf("open the object store: %w", err)
	}
	return &S3{client: client, o: o}, nil
}

func (s *S3) key(id uuid.UUID) string { return s.o.Prefix + id.String() }

// partBytes is how much of an object is held in memory while it is sent.
const partBytes = 16 << 20

// Put implements [Store].
func (s *S3) Put(ctx context.Context, id uuid.UUID, content io.Reader, size int64) error {
	_, err := s.client.PutObject(ctx, s.o.Bucket, s.key(id), content, size, minio.PutObjectOptions{
		ContentType: "application/octet-stream", PartSize: partBytes,
	})
	return told(err)
}

// Read implements [Store].
func (s *S3) Read(ctx context.Context, id uuid.UUID, offset int64, limit int) ([]byte, error) {
	options := minio.GetObjectOptions{}
	if err := options.SetRange(offset, offset+int64(limit)-1); err != nil {
		return nil, err
	}
	body, _, _, err := (minio.Core{Client: s.client}).GetObject(ctx, s.o.Bucket, s.key(id), options)
	if err != nil {
		return s.refused(id, err)
	}
	defer func() { _ = body.Close() }()
	out, err := io.ReadAll(io.LimitReader(body, int64(limit)))
	return out, told(err)
}

func (s *S3) refused(id uuid.UUID, err error) ([]byte, error) {
	switch answer := minio.ToErrorResponse(err); {
	case answer.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return nil, nil
	case answer.StatusCode == http.StatusNotFound && answer.Code == minio.NoSuchKey:
		return nil, Missing(id)
	}
	return nil, told(err)
}

// Delete implements [Store].
func (s *S3) Delete(ctx context.Context, id uuid.UUID) error {
	return told(s.client.RemoveObject(ctx, s.o.Bucket, s.key(id), minio.RemoveObjectOptions{}))
}

// Ping implements [Store].
func (s *S3) Ping(ctx context.Context) error {
	there, err := s.client.BucketExists(ctx, s.o.Bucket)
	if err == nil && !there {
		return fmt.Errorf("there is no bucket %q at the object store", s.o.Bucket)
	}
	return told(err)
}

// told is an error of the store without the address that was asked, which is signed.
func told(err error) error {
	if err == nil {
		return nil
	}
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	return fmt.Errorf("the object store: %w", err)
}
