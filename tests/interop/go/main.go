// The main operations of the services with Go's SDKs: `interop blobs`, `tables`, `queues` or `files`. One line per operation; a failure ends it.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

var ctx = context.Background()

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func must(fine bool, what string) {
	if !fine {
		fmt.Fprintln(os.Stderr, "not so: "+what)
		os.Exit(1)
	}
}

func expect(err error, code bloberror.Code) {
	must(err != nil && bloberror.HasCode(err, code), fmt.Sprintf("%s was due, not %v", code, err))
}

func step(name string) { fmt.Println("ok " + name) }

func body(content string) io.ReadSeekCloser {
	return streaming.NopCloser(bytes.NewReader([]byte(content)))
}

func read(client *blob.Client) string {
	answer, err := client.DownloadStream(ctx, nil)
	check(err)
	content, err := io.ReadAll(answer.Body)
	check(err)
	return string(content)
}

// expectCode is for SDKs without an error type of their own.
func expectCode(err error, code string) {
	var answer *azcore.ResponseError
	must(errors.As(err, &answer) && answer.ErrorCode == code, fmt.Sprintf("%s was due, not %v", code, err))
}

func main() {
	programs := map[string]func(account, key string){"blobs": blobs, "tables": tables, "queues": queues, "files": files}
	must(len(os.Args) == 2 && programs[os.Args[1]] != nil, "interop blobs|tables|queues|files")
	programs[os.Args[1]](os.Getenv("STAMP_ACCOUNT"), os.Getenv("STAMP_KEY"))
	fmt.Println("all passed")
}

func blobs(account, key string) {
	endpoint := os.Getenv("STAMP_BLOB_ENDPOINT")
	credential, err := service.NewSharedKeyCredential(account, key)
	check(err)
	client, err := service.NewClientWithSharedKeyCredential(endpoint, credential, nil)
	check(err)
	name := fmt.Sprintf("go-%d", time.Now().UnixNano())
	in := client.NewContainerClient(name)
	_, err = in.Create(ctx, &container.CreateOptions{Metadata: map[string]*string{"of": to.Ptr("container")}})
	check(err)
	_, err = in.Create(ctx, nil)
	expect(err, bloberror.ContainerAlreadyExists)
	step("containers: create")

	content := make([]byte, 9*1024*1024+7)
	_, err = rand.Read(content)
	check(err)
	block := in.NewBlockBlobClient("folder/ä b+c%.bin")
	_, err = block.UploadBuffer(ctx, content, &azblob.UploadBufferOptions{BlockSize: 1024 * 1024, Concurrency: 4})
	check(err)
	back := make([]byte, len(content))
	_, err = block.DownloadBuffer(ctx, back, nil)
	check(err)
	must(bytes.Equal(content, back), "the bytes are the same")
	_, err = block.SetMetadata(ctx, map[string]*string{}, &blob.SetMetadataOptions{AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: to.Ptr(azcore.ETag("\"0x8D0000000000000\""))}}})
	expect(err, bloberror.ConditionNotMet)
	_, err = in.NewBlobClient("none").GetProperties(ctx, nil)
	must(err != nil, "nothing is there")
	step("block blobs: upload in parallel, download, conditions")

	staged := in.NewBlockBlobClient("staged")
	ids := []string{"MDAwMA==", "MDAwMQ=="}
	for i, part := range []string{"one ", "two"} {
		_, err = staged.StageBlock(ctx, ids[i], body(part), nil)
		check(err)
	}
	_, err = staged.CommitBlockList(ctx, []string{ids[1], ids[0]}, nil)
	check(err)
	must(read(staged.BlobClient()) == "twoone ", "blocks are in the order of the list")
	list, err := staged.GetBlockList(ctx, blockblob.BlockListTypeCommitted, nil)
	check(err)
	must(len(list.CommittedBlocks) == 2, "two blocks")
	step("blocks: stage, commit, list")

	log := in.NewAppendBlobClient("log")
	_, err = log.Create(ctx, nil)
	check(err)
	_, err = log.AppendBlock(ctx, body("line"), nil)
	check(err)
	_, err = log.AppendBlock(ctx, body("x"), &appendblob.AppendBlockOptions{AppendPositionAccessConditions: &appendblob.AppendPositionAccessConditions{AppendPosition: to.Ptr(int64(1))}})
	expect(err, bloberror.AppendPositionConditionNotMet)
	step("append blobs: create, append, conditions")

	disk := in.NewPageBlobClient("disk")
	_, err = disk.Create(ctx, 1024*1024, nil)
	check(err)
	_, err = disk.UploadPages(ctx, streaming.NopCloser(bytes.NewReader(content[:4096])), blob.HTTPRange{Offset: 8192, Count: 4096}, nil)
	check(err)
	_, err = disk.ClearPages(ctx, blob.HTTPRange{Offset: 8192, Count: 512}, nil)
	check(err)
	ranges, err := disk.NewGetPageRangesPager(nil).NextPage(ctx)
	check(err)
	must(len(ranges.PageRange) == 1 && *ranges.PageRange[0].Start == 8704 && *ranges.PageRange[0].End == 12287, "one range")
	step("page blobs: create, write, clear, ranges")

	copied := in.NewBlobClient("copied")
	_, err = copied.StartCopyFromURL(ctx, block.URL(), nil)
	check(err)
	for i := 0; ; i++ {
		properties, err := copied.GetProperties(ctx, nil)
		check(err)
		if *properties.CopyStatus != blob.CopyStatusTypePending {
			must(*properties.CopyStatus == blob.CopyStatusTypeSuccess, "the copy succeeds")
			break
		}
		must(i < 100, "the copy ends")
		time.Sleep(100 * time.Millisecond)
	}
	must(read(copied) == string(content), "a copy has the bytes of its source")
	step("copies")

	url, err := staged.GetSASURL(sas.BlobPermissions{Read: true}, time.Now().Add(time.Hour), nil)
	check(err)
	anonymous, err := blob.NewClientWithNoCredential(url, nil)
	check(err)
	must(read(anonymous) == "twoone ", "a SAS lets read")
	_, err = anonymous.Delete(ctx, nil)
	expect(err, bloberror.AuthorizationPermissionMismatch)
	step("shared access signatures")

	snapshot, err := staged.CreateSnapshot(ctx, nil)
	check(err)
	_, err = staged.Upload(ctx, body("new"), nil)
	check(err)
	old, err := staged.BlobClient().WithSnapshot(*snapshot.Snapshot)
	check(err)
	must(read(old) == "twoone ", "a snapshot stays what it was")
	step("snapshots")

	names := []string{}
	pager := in.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{MaxResults: to.Ptr(int32(2))})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		check(err)
		for _, item := range page.Segment.BlobItems {
			names = append(names, *item.Name)
		}
	}
	must(len(names) == 5, fmt.Sprint(names))
	_, err = in.Delete(ctx, nil)
	check(err)
	step("lists by pages; container deleted")
}
