package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func entityOf(partitionKey, rowKey string, properties map[string]any) []byte {
	entity := aztables.EDMEntity{Entity: aztables.Entity{PartitionKey: partitionKey, RowKey: rowKey}, Properties: properties}
	bytes, err := json.Marshal(entity)
	check(err)
	return bytes
}

func read1(table *aztables.Client, partitionKey, rowKey string) (map[string]any, azcore.ETag) {
	answer, err := table.GetEntity(ctx, partitionKey, rowKey, nil)
	check(err)
	var entity aztables.EDMEntity
	check(json.Unmarshal(answer.Value, &entity))
	return entity.Properties, answer.ETag
}

func count(table *aztables.Client, options *aztables.ListEntitiesOptions) (pages, entities int) {
	pager := table.NewListEntitiesPager(options)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		check(err)
		pages++
		entities += len(page.Entities)
	}
	return pages, entities
}

func tables(account, key string) {
	credential, err := aztables.NewSharedKeyCredential(account, key)
	check(err)
	service, err := aztables.NewServiceClientWithSharedKey(os.Getenv("STAMP_TABLE_ENDPOINT"), credential, nil)
	check(err)
	name := fmt.Sprintf("Go%d", time.Now().UnixNano())
	table := service.NewClient(name)
	_, err = table.CreateTable(ctx, nil)
	check(err)
	_, err = table.CreateTable(ctx, nil)
	expectCode(err, string(aztables.TableAlreadyExists))
	step("tables: create")

	moment := time.Date(2026, 11, 22, 10, 20, 30, 123456700, time.UTC)
	whole := map[string]any{
		"text": "höhe <&>", "small": int32(-7), "large": aztables.EDMInt64(9223372036854775807), "real": 0.5, "yes": true,
		"bytes": aztables.EDMBinary{0, 1, 255}, "id": aztables.EDMGUID("c9da6455-213d-42c9-9a79-3e9149a57833"), "moment": aztables.EDMDateTime(moment),
	}
	_, err = table.AddEntity(ctx, entityOf("p", "r", whole), nil)
	check(err)
	seen, etag := read1(table, "p", "r")
	must(seen["large"] == aztables.EDMInt64(9223372036854775807) && seen["text"] == "höhe <&>" && seen["yes"] == true && seen["real"] == 0.5, fmt.Sprint(seen))
	must(time.Time(seen["moment"].(aztables.EDMDateTime)).Equal(moment) && string(seen["bytes"].(aztables.EDMBinary)) == "\x00\x01\xff", fmt.Sprint(seen))
	_, err = table.AddEntity(ctx, entityOf("p", "r", nil), nil)
	expectCode(err, string(aztables.EntityAlreadyExists))
	_, err = table.GetEntity(ctx, "p", "none", nil)
	expectCode(err, string(aztables.ResourceNotFound))
	step("entities: insert, get, types to the last digit")

	change := entityOf("p", "r", map[string]any{"small": int32(8)})
	_, err = table.UpdateEntity(ctx, change, &aztables.UpdateEntityOptions{IfMatch: &etag, UpdateMode: aztables.UpdateModeMerge})
	check(err)
	merged, _ := read1(table, "p", "r")
	must(merged["small"] == int32(8) && merged["text"] == "höhe <&>", fmt.Sprint(merged))
	_, err = table.UpdateEntity(ctx, change, &aztables.UpdateEntityOptions{IfMatch: &etag, UpdateMode: aztables.UpdateModeReplace})
	expectCode(err, string(aztables.UpdateConditionNotSatisfied))
	_, err = table.UpsertEntity(ctx, change, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
	check(err)
	replaced, _ := read1(table, "p", "r")
	must(replaced["text"] == nil, "replaced")
	_, err = table.DeleteEntity(ctx, "p", "r", nil)
	check(err)
	step("entities: merge, replace, upsert, delete; If-Match")

	actions := []aztables.TransactionAction{}
	for i := range 100 {
		actions = append(actions, aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: entityOf("t", fmt.Sprintf("%03d", i), map[string]any{"number": int32(i)})})
	}
	_, err = table.SubmitTransaction(ctx, actions, nil)
	check(err)
	_, err = table.SubmitTransaction(ctx, []aztables.TransactionAction{
		{ActionType: aztables.TransactionTypeInsertReplace, Entity: entityOf("t", "new", nil)},
		{ActionType: aztables.TransactionTypeAdd, Entity: entityOf("t", "057", nil)},
	}, nil)
	must(err != nil, "a conflict is told")
	_, err = table.GetEntity(ctx, "t", "new", nil)
	expectCode(err, string(aztables.ResourceNotFound))
	step("transactions: 100 entities; a conflict applies nothing")

	pages, entities := count(table, &aztables.ListEntitiesOptions{Filter: to.Ptr("PartitionKey eq 't'"), Top: to.Ptr(int32(30))})
	must(pages == 4 && entities == 100, fmt.Sprint(pages, entities))
	_, entities = count(table, &aztables.ListEntitiesOptions{Filter: to.Ptr("PartitionKey eq 't' and number ge 50 and number lt 60"), Select: to.Ptr("number")})
	must(entities == 10, fmt.Sprint(entities))
	step("queries: filters, select, pages")

	url, err := table.GetTableSASURL(aztables.SASPermissions{Read: true}, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	check(err)
	// A client of that URL itself would lose the slash after an account in the path.
	_, token, _ := strings.Cut(url, "?")
	anonymous, err := aztables.NewServiceClientWithNoCredential(os.Getenv("STAMP_TABLE_ENDPOINT")+"/?"+token, nil)
	check(err)
	reader := anonymous.NewClient(name)
	_, entities = count(reader, nil)
	must(entities == 100, "a SAS lets read")
	_, err = reader.DeleteEntity(ctx, "t", "001", nil)
	expectCode(err, "AuthorizationPermissionMismatch")
	step("shared access signatures: read, and nothing else")

	_, err = table.Delete(ctx, nil)
	check(err)
	step("table deleted")
}
