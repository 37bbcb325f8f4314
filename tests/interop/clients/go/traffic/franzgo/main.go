// Traffic of franz-go: kadm, an idempotent producer, a group, and a transaction.
package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kraftwire/probes/probe"
	"kraftwire/probes/traffic/orders"
)

const (
	name  = "franz-go"
	topic = "franz-go-orders"
)

func open(more ...kgo.Opt) *kgo.Client {
	options := append([]kgo.Opt{kgo.SeedBrokers(probe.Servers()...), kgo.ClientID(name)}, more...)
	client, err := kgo.NewClient(options...)
	orders.Must(err)
	return client
}

func record(number int) *kgo.Record {
	value := orders.Value(name, number)
	return &kgo.Record{Topic: topic, Key: orders.Key(number), Value: value}
}

func produce(limited context.Context) {
	client := open(kgo.ProducerBatchCompression(kgo.NoCompression()))
	defer client.Close()
	for round := range orders.Rounds {
		var batch []*kgo.Record
		for each := range orders.Batch {
			batch = append(batch, record(round*orders.Batch+each))
		}
		orders.Must(client.ProduceSync(limited, batch...).FirstErr())
	}
}

func transact(limited context.Context) {
	client := open(kgo.TransactionalID("franz-go-transactions"))
	defer client.Close()
	for round := range 6 {
		orders.Must(client.BeginTransaction())
		orders.Must(client.ProduceSync(limited, record(round), record(round+1)).FirstErr())
		orders.Must(client.EndTransaction(limited, kgo.TransactionEndTry(round%3 != 2)))
	}
}

func consume(limited context.Context) {
	client := open(
		kgo.ConsumerGroup("franz-go-readers"),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxPartitionBytes(100),
		kgo.DisableAutoCommit(),
	)
	defer client.Close()
	for count := 0; count < orders.Rounds*orders.Batch; {
		fetches := client.PollFetches(limited)
		orders.Must(fetches.Err())
		count += fetches.NumRecords()
		orders.Must(client.CommitUncommittedOffsets(limited))
	}
}

func describe(limited context.Context, admin *kadm.Client) {
	for range 3 {
		_, err := admin.ListTopics(limited)
		orders.Must(err)
		_, err = admin.ListEndOffsets(limited, topic)
		orders.Must(err)
		_, err = admin.DescribeTopicConfigs(limited, topic)
		orders.Must(err)
		_, err = admin.ListGroups(limited)
		orders.Must(err)
		_, err = admin.DescribeGroups(limited, "franz-go-readers")
		orders.Must(err)
		_, err = admin.FetchOffsets(limited, "franz-go-readers")
		orders.Must(err)
		_, err = admin.DescribeAllLogDirs(limited, nil)
		orders.Must(err)
		_, err = admin.ListTransactions(limited, nil, nil)
		orders.Must(err)
		_, err = admin.DescribeTransactions(limited, "franz-go-transactions")
		orders.Must(err)
		_, err = admin.DescribeProducers(limited, kadm.TopicsSet{topic: {0: {}}})
		orders.Must(err)
	}
}

func main() {
	limited, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	client := open()
	defer client.Close()
	admin := kadm.NewClient(client)
	_, err := admin.CreateTopic(limited, orders.Partitions, 1, nil, topic)
	orders.Must(err)
	produce(limited)
	transact(limited)
	consume(limited)
	describe(limited, admin)
	_, err = admin.DeleteGroup(limited, "franz-go-readers")
	orders.Must(err)
	_, err = admin.DeleteTopic(limited, topic)
	orders.Must(err)
}
