// Traffic of franz-go: kadm, producers, groups of both protocols, and transactions.
package main

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kraftwire/probes/probe"
	"kraftwire/probes/traffic/orders"
)

const (
	name     = "franz-go"
	topic    = "franz-go-orders"
	readers  = "franz-go-readers"
	watchers = "franz-go-watchers"
	ledger   = "franz-go-transactions"
)

func open(more ...kgo.Opt) *kgo.Client {
	options := append([]kgo.Opt{kgo.SeedBrokers(probe.Servers()...), kgo.ClientID(name)}, more...)
	client, err := kgo.NewClient(options...)
	orders.Must(err)
	return client
}

// A step with an admin client of its own.
func administer(
	name string, take func(context.Context, *kadm.Client, *kgo.Client) string,
) probe.Step {
	return orders.Step(name, func(limited context.Context) string {
		client := open()
		defer client.Close()
		return take(limited, kadm.NewClient(client), client)
	})
}

func cluster(limited context.Context, admin *kadm.Client, _ *kgo.Client) string {
	metadata, err := admin.BrokerMetadata(limited)
	orders.Must(err)
	orders.Expect(len(metadata.Cluster) == 22, "found %+v", metadata)
	return fmt.Sprintf("%d brokers", len(metadata.Brokers))
}

// kadm has no call for the quorum, but the client can send the request.
func quorum(limited context.Context, _ *kadm.Client, client *kgo.Client) string {
	asked := kmsg.NewDescribeQuorumRequestTopic()
	asked.Topic = probe.Topic
	asked.Partitions = append(asked.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	request := kmsg.NewPtrDescribeQuorumRequest()
	request.Topics = append(request.Topics, asked)
	response, err := request.RequestWith(limited, client)
	orders.Must(err)
	orders.Expect(response.ErrorCode == 0 && len(response.Topics) == 1, "found %+v", response)
	found := response.Topics[0].Partitions[0]
	orders.Expect(found.ErrorCode == 0 && found.LeaderID > 0, "found %+v", found)
	return fmt.Sprintf("%d voters", len(found.CurrentVoters))
}

func features(limited context.Context, _ *kadm.Client, client *kgo.Client) string {
	request := kmsg.NewPtrApiVersionsRequest()
	request.ClientSoftwareName, request.ClientSoftwareVersion = name, "1"
	response, err := request.RequestWith(limited, client)
	orders.Must(err)
	var levels []string
	for _, feature := range response.FinalizedFeatures {
		levels = append(levels, fmt.Sprintf("%s %d", feature.Name, feature.MaxVersionLevel))
	}
	sort.Strings(levels)
	return strings.Join(levels, ", ")
}

func topics(limited context.Context, admin *kadm.Client, _ *kgo.Client) string {
	_, err := admin.CreateTopic(limited, orders.Partitions-1, -1, nil, topic)
	orders.Must(err)
	// kadm asks a broker how many there are.
	described(limited, admin, orders.Partitions-1)
	resized, err := admin.CreatePartitions(limited, 1, topic)
	orders.Must(err)
	orders.Must(resized.Error())
	found := described(limited, admin, orders.Partitions)
	return fmt.Sprintf("%d partitions of %d replicas", len(found), found.NumReplicas())
}

// The topic's partitions, once there are so many.
func described(limited context.Context, admin *kadm.Client, count int) (found kadm.PartitionDetails) {
	orders.Until(limited, func() bool {
		listed, err := admin.ListTopics(limited)
		orders.Must(err)
		found = listed[topic].Partitions
		return len(found) == count
	})
	return found
}

func configs(limited context.Context, admin *kadm.Client, _ *kgo.Client) string {
	value := orders.Retention
	change := kadm.AlterConfig{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}
	altered, err := admin.AlterTopicConfigs(limited, []kadm.AlterConfig{change}, topic)
	orders.Must(err)
	orders.Must(altered[0].Err)
	var count int
	orders.Until(limited, func() bool {
		found, err := admin.DescribeTopicConfigs(limited, topic)
		orders.Must(err)
		isChanged := false
		for _, config := range found[0].Configs {
			isChanged = isChanged || config.Key == "retention.ms" && config.MaybeValue() == value
		}
		count = len(found[0].Configs)
		return isChanged
	})
	return fmt.Sprintf("%d properties", count)
}

func record(number int) *kgo.Record {
	value := orders.Value(name, number)
	return &kgo.Record{Topic: topic, Key: orders.Key(number), Value: value}
}

func produce(count int, more ...kgo.Opt) func(context.Context) string {
	return func(limited context.Context) string {
		client := open(append(more, kgo.ProducerBatchCompression(kgo.NoCompression()))...)
		defer client.Close()
		for start := 0; start < count; start += orders.Batch {
			var batch []*kgo.Record
			for each := range orders.Batch {
				batch = append(batch, record(start+each))
			}
			orders.Must(client.ProduceSync(limited, batch...).FirstErr())
		}
		return fmt.Sprintf("%d records", count)
	}
}

func transactions(limited context.Context, admin *kadm.Client, _ *kgo.Client) string {
	client := open(kgo.TransactionalID(ledger))
	defer client.Close()
	for round := range orders.Transactions {
		orders.Must(client.BeginTransaction())
		orders.Must(client.ProduceSync(limited, record(round), record(round+1)).FirstErr())
		orders.Must(client.EndTransaction(limited, kgo.TransactionEndTry(round%3 != 2)))
	}
	_, err := admin.ListTransactions(limited, nil, nil)
	orders.Must(err)
	_, err = admin.DescribeProducers(limited, kadm.TopicsSet{topic: {0: {}}})
	orders.Must(err)
	found, err := admin.DescribeTransactions(limited, ledger)
	orders.Must(err)
	orders.Must(found[ledger].Err)
	return fmt.Sprintf("%d transactions, %s", orders.Transactions, found[ledger].State)
}

func consume(group string, isNew bool) func(context.Context) string {
	return func(limited context.Context) string {
		return fmt.Sprintf("%d records", read(limited, group, isNew))
	}
}

func read(limited context.Context, group string, isNew bool) int {
	options := []kgo.Opt{
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxPartitionBytes(100),
		kgo.DisableAutoCommit(),
	}
	if isNew {
		optIn := context.WithValue(context.Background(), "opt_in_kafka_next_gen_balancer_beta", true)
		options = append(options, kgo.WithContext(optIn))
	}
	client := open(options...)
	defer client.Close()
	count := 0
	for count < orders.Count+orders.More {
		fetches := client.PollFetches(limited)
		orders.Must(fetches.Err())
		count += fetches.NumRecords()
		orders.Must(client.CommitUncommittedOffsets(limited))
	}
	return count
}

func groups(limited context.Context, admin *kadm.Client, _ *kgo.Client) string {
	listed, err := admin.ListGroups(limited)
	orders.Must(err)
	orders.Expect(len(listed[readers].Group) > 0, "found %+v", listed)
	described, err := admin.DescribeGroups(limited, readers)
	orders.Must(err)
	offsets, err := admin.FetchOffsets(limited, readers)
	orders.Must(err)
	ends, err := admin.ListEndOffsets(limited, topic)
	orders.Must(err)
	var total, end int64
	offsets.Each(func(offset kadm.OffsetResponse) { total += offset.At })
	ends.Each(func(offset kadm.ListedOffset) { end += offset.Offset })
	orders.Expect(total == end, "offsets %d, ends %d", total, end)
	_, err = admin.DescribeAllLogDirs(limited, nil)
	orders.Must(err)
	return fmt.Sprintf("%s, offsets %d", described[readers].State, total)
}

func remove(limited context.Context, admin *kadm.Client, _ *kgo.Client) string {
	until := kadm.Offsets{}
	until.AddOffset(topic, 0, 5, -1)
	_, err := admin.DeleteRecords(limited, until)
	orders.Must(err)
	deleted, err := admin.DeleteGroups(limited, readers, watchers)
	orders.Must(err)
	orders.Must(deleted.Error())
	_, err = admin.DeleteTopic(limited, topic)
	orders.Must(err)
	orders.Until(limited, func() bool {
		listed, err := admin.ListTopics(limited)
		orders.Must(err)
		return !listed.Has(topic)
	})
	return "records, groups, topic"
}

func main() {
	probe.Run(
		"github.com/twmb/franz-go",
		administer("cluster", cluster),
		administer("quorum", quorum),
		administer("features", features),
		administer("topics", topics),
		administer("configs", configs),
		orders.Step("produce", produce(orders.Count, kgo.DisableIdempotentWrite())),
		orders.Step("idempotent", produce(orders.More)),
		orders.Step("classic", consume(readers, false)),
		orders.Step("consumer", consume(watchers, true)),
		administer("groups", groups),
		administer("transactions", transactions),
		administer("delete", remove),
	)
}
