package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/sas"
)

func queues(account, key string) {
	credential, err := azqueue.NewSharedKeyCredential(account, key)
	check(err)
	service, err := azqueue.NewServiceClientWithSharedKeyCredential(os.Getenv("STAMP_QUEUE_ENDPOINT"), credential, nil)
	check(err)
	name := fmt.Sprintf("go-%d", time.Now().UnixNano())
	queue := service.NewQueueClient(name)
	_, err = queue.Create(ctx, &azqueue.CreateOptions{Metadata: map[string]*string{"of": to.Ptr("queue")}})
	check(err)
	_, err = queue.Create(ctx, &azqueue.CreateOptions{Metadata: map[string]*string{"of": to.Ptr("another")}})
	expectCode(err, "QueueAlreadyExists")
	found := 0
	pager := service.NewListQueuesPager(&azqueue.ListQueuesOptions{Prefix: to.Ptr(name)})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		check(err)
		found += len(page.Queues)
	}
	must(found == 1, "the queue is listed")
	step("queues: create, list")

	texts := []string{"plain", "&lt;ä €&gt;", strings.Repeat("x", 64*1024)}
	for _, text := range texts {
		_, err = queue.EnqueueMessage(ctx, text, nil)
		check(err)
	}
	peeked, err := queue.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: to.Ptr(int32(32))})
	check(err)
	must(len(peeked.Messages) == 3, "three messages")
	properties, err := queue.GetProperties(ctx, nil)
	check(err)
	must(*properties.ApproximateMessagesCount == 3, "the count is 3")
	got, err := queue.DequeueMessages(ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr(int32(32)), VisibilityTimeout: to.Ptr(int32(60))})
	check(err)
	must(len(got.Messages) == 3 && *got.Messages[0].MessageText == "plain" && len(*got.Messages[2].MessageText) == 64*1024, "as they were put")
	none, err := queue.DequeueMessage(ctx, nil)
	check(err)
	must(len(none.Messages) == 0, "all are in one hand")
	step("messages: put, peek, get, up to 64 KiB")

	first := got.Messages[0]
	updated, err := queue.UpdateMessage(ctx, *first.MessageID, *first.PopReceipt, "half done", &azqueue.UpdateMessageOptions{VisibilityTimeout: to.Ptr(int32(60))})
	check(err)
	_, err = queue.DeleteMessage(ctx, *first.MessageID, *first.PopReceipt, nil)
	expectCode(err, "MessageNotFound")
	_, err = queue.DeleteMessage(ctx, *first.MessageID, *updated.PopReceipt, nil)
	check(err)
	_, err = queue.DeleteMessage(ctx, *first.MessageID, *updated.PopReceipt, nil)
	expectCode(err, "MessageNotFound")
	_, err = queue.ClearMessages(ctx, nil)
	check(err)
	step("messages: update, pop receipts, delete, clear")

	// GetSASURL makes one for https only.
	values := sas.QueueSignatureValues{
		Protocol: sas.ProtocolHTTPSandHTTP, QueueName: name, ExpiryTime: time.Now().Add(time.Hour).UTC(), Permissions: (&sas.QueuePermissions{Add: true}).String(),
	}
	token, err := values.SignWithSharedKey(credential)
	check(err)
	adder, err := azqueue.NewQueueClientWithNoCredential(queue.URL()+"?"+token.Encode(), nil)
	check(err)
	_, err = adder.EnqueueMessage(ctx, "by an adder", nil)
	check(err)
	_, err = adder.DequeueMessage(ctx, nil)
	expectCode(err, "AuthorizationPermissionMismatch")
	step("shared access signatures: add, and nothing else")

	_, err = queue.Delete(ctx, nil)
	check(err)
	_, err = queue.GetProperties(ctx, nil)
	expectCode(err, "QueueNotFound")
	step("queue deleted")
}
