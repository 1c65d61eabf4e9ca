package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
)

func files(account, key string) {
	credential, err := service.NewSharedKeyCredential(account, key)
	check(err)
	client, err := service.NewClientWithSharedKeyCredential(os.Getenv("STAMP_FILE_ENDPOINT"), credential, nil)
	check(err)
	name := fmt.Sprintf("go-%d", time.Now().UnixNano())
	shared := client.NewShareClient(name)
	_, err = shared.Create(ctx, &share.CreateOptions{Quota: to.Ptr(int32(5)), Metadata: map[string]*string{"of": to.Ptr("go")}})
	check(err)
	_, err = shared.Create(ctx, nil)
	expectCode(err, "ShareAlreadyExists")
	_, err = shared.SetProperties(ctx, &share.SetPropertiesOptions{Quota: to.Ptr(int32(7))})
	check(err)
	told, err := shared.GetProperties(ctx, nil)
	check(err)
	must(*told.Quota == 7, "the quota is 7")
	pager := client.NewListSharesPager(&service.ListSharesOptions{Prefix: to.Ptr(name)})
	page, err := pager.NextPage(ctx)
	check(err)
	must(len(page.Shares) == 1 && *page.Shares[0].Name == name, "the share is listed")
	_, err = shared.GetStatistics(ctx, nil)
	check(err)
	_, err = shared.CreateSnapshot(ctx, nil)
	must(err != nil, "no snapshots of shares")
	step("shares: create, properties, list, statistics")

	root := shared.NewRootDirectoryClient()
	directories(shared)
	content(root)
	renames(root)
	signatures(shared)
	_, err = shared.Delete(ctx, nil)
	check(err)
	_, err = shared.GetProperties(ctx, nil)
	expectCode(err, "ShareNotFound")
	step("shares: delete")
}

func directories(shared *share.Client) {
	folder := shared.NewDirectoryClient("Folder")
	_, err := folder.Create(ctx, &directory.CreateOptions{Metadata: map[string]*string{"a": to.Ptr("b")}})
	check(err)
	_, err = folder.Create(ctx, nil)
	expectCode(err, "ResourceAlreadyExists")
	_, err = folder.NewSubdirectoryClient("none").NewSubdirectoryClient("deeper").Create(ctx, nil)
	expectCode(err, "ParentNotFound")
	for i := range 5 {
		_, err = folder.NewFileClient(fmt.Sprintf("file %d+ü%%", i)).Create(ctx, int64(i), nil)
		check(err)
	}
	_, err = folder.Delete(ctx, nil)
	expectCode(err, "DirectoryNotEmpty")
	_, err = folder.NewSubdirectoryClient("Sub").Create(ctx, nil)
	check(err)
	pages, names := 0, []string{}
	list := folder.NewListFilesAndDirectoriesPager(&directory.ListFilesAndDirectoriesOptions{
		MaxResults:          to.Ptr(int32(2)),
		IncludeExtendedInfo: to.Ptr(true),
		Include:             directory.ListFilesInclude{Timestamps: true, ETag: true, Attributes: true, PermissionKey: true},
	})
	for list.More() {
		page, err := list.NextPage(ctx)
		check(err)
		pages++
		for _, one := range page.Segment.Directories {
			names = append(names, *one.Name+"/")
		}
		for _, one := range page.Segment.Files {
			must(one.ID != nil && one.Properties.LastWriteTime != nil, "extended information")
			names = append(names, *one.Name)
		}
	}
	must(pages == 3 && len(names) == 6, fmt.Sprintf("three pages of two, not %d: %v", pages, names))
	_, err = shared.NewDirectoryClient("FOLDER").GetProperties(ctx, nil)
	check(err)
	handles, err := folder.ListHandles(ctx, &directory.ListHandlesOptions{Recursive: to.Ptr(true)})
	check(err)
	must(len(handles.Handles) == 0, "no handles")
	closed, err := folder.ForceCloseHandles(ctx, "*", &directory.ForceCloseHandlesOptions{Recursive: to.Ptr(true)})
	check(err)
	must(*closed.NumberOfHandlesClosed == 0, "none closed")
	step("directories: create, list in pages, names in any case, handles")
}

func content(root *directory.Client) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 9<<16)
	large := root.NewFileClient("large")
	_, err := large.Create(ctx, int64(len(data)), nil)
	check(err)
	check(large.UploadBuffer(ctx, data, nil))
	back := make([]byte, len(data))
	count, err := large.DownloadBuffer(ctx, back, nil)
	check(err)
	must(count == int64(len(data)) && bytes.Equal(back, data), "as it was written")
	part, err := large.DownloadStream(ctx, &file.DownloadStreamOptions{Range: file.HTTPRange{Offset: 16, Count: 4}})
	check(err)
	text, err := io.ReadAll(part.Body)
	check(err)
	must(string(text) == "0123", "a range")
	sparse := root.NewFileClient("sparse")
	_, err = sparse.Create(ctx, 1<<40, nil)
	check(err)
	_, err = sparse.UploadRange(ctx, 1<<40-3, body("end"), nil)
	check(err)
	_, err = sparse.UploadRange(ctx, 0, body(string(data[:2048])), nil)
	check(err)
	_, err = sparse.ClearRange(ctx, file.HTTPRange{Offset: 512, Count: 512}, nil)
	check(err)
	ranges, err := sparse.GetRangeList(ctx, nil)
	check(err)
	must(len(ranges.Ranges) == 3 && *ranges.Ranges[0].End == 511, fmt.Sprintf("three ranges, not %d", len(ranges.Ranges)))
	_, err = sparse.Resize(ctx, 10, nil)
	check(err)
	_, err = sparse.UploadRange(ctx, 9, body("beyond"), nil)
	expectCode(err, "InvalidRange")
	step("files: a large one, a sparse one of 1 TiB, ranges, resize")

	_, err = sparse.SetHTTPHeaders(ctx, &file.SetHTTPHeadersOptions{
		HTTPHeaders:   &file.HTTPHeaders{ContentType: to.Ptr("text/x")},
		SMBProperties: &file.SMBProperties{Attributes: &file.NTFSFileAttributes{Hidden: true}, LastWriteTime: to.Ptr(time.Unix(1e9, 0))},
	})
	check(err)
	_, err = sparse.SetMetadata(ctx, &file.SetMetadataOptions{Metadata: map[string]*string{"k": to.Ptr("v")}})
	check(err)
	told, err := sparse.GetProperties(ctx, nil)
	check(err)
	must(*told.ContentType == "text/x" && told.FileLastWriteTime.Unix() == 1e9 && *told.FileAttributes == "Hidden", "properties as they were set")
	held, err := lease.NewFileClient(sparse, nil)
	check(err)
	_, err = held.Acquire(ctx, nil)
	check(err)
	_, err = sparse.Delete(ctx, nil)
	expectCode(err, "LeaseIdMissing")
	_, err = held.Release(ctx, nil)
	check(err)
	step("files: properties, metadata, leases")

	copied := root.NewFileClient("copied")
	started, err := copied.StartCopyFromURL(ctx, large.URL(), nil)
	check(err)
	status := *started.CopyStatus
	for i := 0; status == "pending" && i < 100; i++ {
		time.Sleep(100 * time.Millisecond)
		told, err := copied.GetProperties(ctx, nil)
		check(err)
		status = *told.CopyStatus
	}
	must(status == "success", "the copy is made")
	_, err = copied.AbortCopy(ctx, *started.CopyID, nil)
	expectCode(err, "NoPendingCopyOperation")
	source, err := large.GetSASURL(sas.FilePermissions{Read: true}, time.Now().Add(time.Hour), nil)
	check(err)
	_, err = copied.UploadRangeFromURL(ctx, source, 3, 0, 5, nil)
	check(err)
	part, err = copied.DownloadStream(ctx, &file.DownloadStreamOptions{Range: file.HTTPRange{Count: 6}})
	check(err)
	text, err = io.ReadAll(part.Body)
	check(err)
	must(string(text) == "345675", "a range from a URL, not "+string(text))
	step("files: copy, range from a URL")
}

func renames(root *directory.Client) {
	from := root.NewSubdirectoryClient("from")
	_, err := from.Create(ctx, nil)
	check(err)
	for _, name := range []string{"a", "b"} {
		_, err = from.NewFileClient(name).Create(ctx, 1, nil)
		check(err)
	}
	_, err = from.Rename(ctx, "to", nil)
	check(err)
	to_ := root.NewSubdirectoryClient("to")
	_, err = to_.NewFileClient("a").Rename(ctx, "to/b", nil)
	expectCode(err, "ResourceAlreadyExists")
	_, err = to_.NewFileClient("a").Rename(ctx, "to/b", &file.RenameOptions{ReplaceIfExists: to.Ptr(true)})
	check(err)
	_, err = to_.NewFileClient("a").GetProperties(ctx, nil)
	expectCode(err, "ResourceNotFound")
	_, err = root.NewFileClient("link").CreateHardLink(ctx, "to/b", nil)
	must(err != nil, "no links")
	step("renames of directories and files; links are refused")
}

func signatures(shared *share.Client) {
	made, err := shared.CreatePermission(ctx, "O:SYG:SYD:(A;;FA;;;SY)", nil)
	check(err)
	told, err := shared.GetPermission(ctx, *made.FilePermissionKey, nil)
	check(err)
	must(*told.Permission == "O:SYG:SYD:(A;;FA;;;SY)", "the permission as it was put")
	signed, err := shared.GetSASURL(sas.SharePermissions{Read: true}, time.Now().Add(time.Hour), nil)
	check(err)
	reader, err := share.NewClientWithNoCredential(signed, nil)
	check(err)
	_, err = reader.NewRootDirectoryClient().NewFileClient("large").GetProperties(ctx, nil)
	check(err)
	_, err = reader.NewRootDirectoryClient().NewFileClient("large").Delete(ctx, nil)
	expectCode(err, "AuthorizationPermissionMismatch")
	step("permissions, signatures of a share")
}
