// Traffic of sarama: its cluster admin, producers, transactions, and a group.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/IBM/sarama"

	"kraftwire/probes/probe"
	"kraftwire/probes/traffic/orders"
)

const (
	name   = "sarama"
	topic  = "sarama-orders"
	group  = "sarama-readers"
	ledger = "sarama-ledger"
)

func config() *sarama.Config {
	made := sarama.NewConfig()
	made.ClientID = name
	made.Version = sarama.V4_0_0_0
	made.Producer.Return.Successes = true
	made.Producer.RequiredAcks = sarama.WaitForAll
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	made.Consumer.Fetch.Default = 100
	made.Consumer.Offsets.AutoCommit.Enable = false
	return made
}

// An idempotent producer has one request at a time, as sarama demands.
func idempotent() *sarama.Config {
	made := config()
	made.Producer.Idempotent = true
	made.Net.MaxOpenRequests = 1
	return made
}

// A step with an admin client of its own.
func administer(name string, take func(context.Context, sarama.ClusterAdmin) string) probe.Step {
	return orders.Step(name, func(limited context.Context) string {
		admin, err := sarama.NewClusterAdmin(probe.Servers(), config())
		orders.Must(err)
		defer admin.Close()
		return take(limited, admin)
	})
}

func cluster(_ context.Context, admin sarama.ClusterAdmin) string {
	brokers, _, err := admin.DescribeCluster()
	orders.Must(err)
	return fmt.Sprintf("%d brokers", len(brokers))
}

func topics(limited context.Context, admin sarama.ClusterAdmin) string {
	detail := &sarama.TopicDetail{NumPartitions: orders.Partitions - 1, ReplicationFactor: -1}
	orders.Must(admin.CreateTopic(topic, detail, false))
	orders.Must(admin.CreatePartitions(topic, orders.Partitions, nil, false))
	var found *sarama.TopicMetadata
	orders.Until(limited, func() bool {
		listed, err := admin.DescribeTopics([]string{topic})
		orders.Must(err)
		found = listed[0]
		return len(found.Partitions) == orders.Partitions
	})
	_, err := admin.ListTopics()
	orders.Must(err)
	return fmt.Sprintf("%d partitions of %d replicas",
		len(found.Partitions), len(found.Partitions[0].Replicas))
}

func configs(limited context.Context, admin sarama.ClusterAdmin) string {
	value := orders.Retention
	entries := map[string]sarama.IncrementalAlterConfigsEntry{
		"retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value},
	}
	orders.Must(admin.IncrementalAlterConfig(sarama.TopicResource, topic, entries, false))
	var count int
	orders.Until(limited, func() bool {
		resource := sarama.ConfigResource{Type: sarama.TopicResource, Name: topic}
		found, err := admin.DescribeConfig(resource)
		orders.Must(err)
		count = len(found)
		for _, entry := range found {
			if entry.Name == "retention.ms" && entry.Value == value {
				return true
			}
		}
		return false
	})
	return fmt.Sprintf("%d properties", count)
}

func message(number int) *sarama.ProducerMessage {
	return &sarama.ProducerMessage{
		Topic: topic,
		Key:   sarama.ByteEncoder(orders.Key(number)),
		Value: sarama.ByteEncoder(orders.Value(name, number)),
	}
}

func produce(count int, config *sarama.Config) func(context.Context) string {
	return func(context.Context) string {
		producer, err := sarama.NewSyncProducer(probe.Servers(), config)
		orders.Must(err)
		defer producer.Close()
		for start := 0; start < count; start += orders.Batch {
			var batch []*sarama.ProducerMessage
			for each := range orders.Batch {
				batch = append(batch, message(start+each))
			}
			orders.Must(producer.SendMessages(batch))
		}
		return fmt.Sprintf("%d records", count)
	}
}

func transactions(_ context.Context, admin sarama.ClusterAdmin) string {
	transactional := idempotent()
	transactional.Producer.Transaction.ID = "sarama-transactions"
	producer, err := sarama.NewSyncProducer(probe.Servers(), transactional)
	orders.Must(err)
	defer producer.Close()
	for number := range orders.Transactions {
		orders.Must(producer.BeginTxn())
		_, _, err := producer.SendMessage(message(number))
		orders.Must(err)
		offset := &sarama.PartitionOffsetMetadata{Partition: 0, Offset: int64(number)}
		offsets := map[string][]*sarama.PartitionOffsetMetadata{topic: {offset}}
		orders.Must(producer.AddOffsetsToTxn(offsets, ledger))
		if number%3 == 2 {
			orders.Must(producer.AbortTxn())
		} else {
			orders.Must(producer.CommitTxn())
		}
	}
	found, err := admin.ListConsumerGroupOffsets(ledger, map[string][]int32{topic: {0}})
	orders.Must(err)
	return fmt.Sprintf("offset %d", found.Blocks[topic][0].Offset)
}

// reader is a member of a group that ends when it has read everything.
type reader struct {
	count  atomic.Int64
	finish func()
}

func (*reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *reader) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for record := range c.Messages() {
		s.MarkMessage(record, "")
		if record.Offset%orders.Batch == 0 || record.Offset+1 == c.HighWaterMarkOffset() {
			s.Commit()
		}
		if r.count.Add(1) == orders.Count+orders.More {
			r.finish()
		}
	}
	return nil
}

func classic(limited context.Context) string {
	limited, cancel := context.WithCancel(limited)
	defer cancel()
	member, err := sarama.NewConsumerGroup(probe.Servers(), group, config())
	orders.Must(err)
	defer member.Close()
	found := &reader{finish: cancel}
	err = member.Consume(limited, []string{topic}, found)
	if !errors.Is(err, context.Canceled) {
		orders.Must(err)
	}
	return fmt.Sprintf("%d records", found.count.Load())
}

func groups(_ context.Context, admin sarama.ClusterAdmin) string {
	listed, err := admin.ListConsumerGroups()
	orders.Must(err)
	_, isListed := listed[group]
	orders.Expect(isListed, "found %v", listed)
	described, err := admin.DescribeConsumerGroups([]string{group})
	orders.Must(err)
	offsets, err := admin.ListConsumerGroupOffsets(group, nil)
	orders.Must(err)
	return fmt.Sprintf("%s, offsets of %d partitions",
		described[0].State, len(offsets.Blocks[topic]))
}

func remove(limited context.Context, admin sarama.ClusterAdmin) string {
	orders.Must(admin.DeleteRecords(topic, map[int32]int64{0: 5}))
	orders.Must(admin.DeleteConsumerGroup(group))
	orders.Must(admin.DeleteTopic(topic))
	orders.Until(limited, func() bool {
		listed, err := admin.ListTopics()
		orders.Must(err)
		_, isThere := listed[topic]
		return !isThere
	})
	return "records, group, topic"
}

func main() {
	probe.Run(
		"github.com/IBM/sarama",
		administer("cluster", cluster),
		administer("topics", topics),
		administer("configs", configs),
		orders.Step("produce", produce(orders.Count, config())),
		orders.Step("idempotent", produce(orders.More, idempotent())),
		orders.Step("classic", classic),
		administer("groups", groups),
		administer("transactions", transactions),
		administer("delete", remove),
	)
}
