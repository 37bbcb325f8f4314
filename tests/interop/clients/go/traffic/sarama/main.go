// Traffic of sarama: its cluster admin, a synchronous producer, and a group.
package main

import (
	"context"
	"time"

	"github.com/IBM/sarama"

	"kraftwire/probes/probe"
	"kraftwire/probes/traffic/orders"
)

const (
	name  = "sarama"
	topic = "sarama-orders"
	group = "sarama-readers"
)

func config() *sarama.Config {
	made := sarama.NewConfig()
	made.ClientID = name
	made.Version = sarama.V4_0_0_0
	made.Producer.Return.Successes = true
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	made.Consumer.Fetch.Default = 100
	made.Consumer.Offsets.AutoCommit.Enable = false
	return made
}

func produce() {
	producer, err := sarama.NewSyncProducer(probe.Servers(), config())
	orders.Must(err)
	defer producer.Close()
	for round := range orders.Rounds {
		var batch []*sarama.ProducerMessage
		for each := range orders.Batch {
			number := round*orders.Batch + each
			batch = append(batch, &sarama.ProducerMessage{
				Topic: topic,
				Key:   sarama.ByteEncoder(orders.Key(number)),
				Value: sarama.ByteEncoder(orders.Value(name, number)),
			})
		}
		orders.Must(producer.SendMessages(batch))
	}
}

// reader is a member of a group that ends when it has read everything.
type reader struct {
	count  int
	finish func()
}

func (*reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *reader) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	for record := range c.Messages() {
		s.MarkMessage(record, "")
		if record.Offset%orders.Batch == 0 {
			s.Commit()
		}
		if record.Offset+1 == c.HighWaterMarkOffset() {
			s.Commit()
			r.finish()
			return nil
		}
	}
	return nil
}

func consume() {
	// One partition's end is enough: its claims end together.
	limited, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	member, err := sarama.NewConsumerGroup(probe.Servers(), group, config())
	orders.Must(err)
	defer member.Close()
	orders.Must(member.Consume(limited, []string{topic}, &reader{finish: cancel}))
}

func describe(admin sarama.ClusterAdmin) {
	for range 3 {
		_, err := admin.ListTopics()
		orders.Must(err)
		_, err = admin.DescribeTopics([]string{topic})
		orders.Must(err)
		_, err = admin.DescribeConfig(
			sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
		orders.Must(err)
		_, err = admin.ListConsumerGroups()
		orders.Must(err)
		_, err = admin.DescribeConsumerGroups([]string{group})
		orders.Must(err)
		_, err = admin.ListConsumerGroupOffsets(group, nil)
		orders.Must(err)
		_, _, err = admin.DescribeCluster()
		orders.Must(err)
	}
}

func main() {
	admin, err := sarama.NewClusterAdmin(probe.Servers(), config())
	orders.Must(err)
	defer admin.Close()
	detail := &sarama.TopicDetail{NumPartitions: orders.Partitions, ReplicationFactor: 1}
	orders.Must(admin.CreateTopic(topic, detail, false))
	produce()
	consume()
	describe(admin)
	orders.Must(admin.CreatePartitions(topic, orders.Partitions+1, nil, false))
	orders.Must(admin.DeleteConsumerGroup(group))
	orders.Must(admin.DeleteTopic(topic))
}
