// Traffic of segmentio/kafka-go: its client, its writer, and a reader in a group.
package main

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go"

	"kraftwire/probes/probe"
	"kraftwire/probes/traffic/orders"
)

const (
	name  = "kafka-go"
	topic = "kafka-go-orders"
	group = "kafka-go-readers"
)

func produce(limited context.Context, transport *kafka.Transport) {
	writer := &kafka.Writer{
		Addr:         kafka.TCP(probe.Servers()...),
		Topic:        topic,
		BatchSize:    orders.Batch,
		BatchTimeout: 5 * time.Millisecond,
		RequiredAcks: kafka.RequireAll,
		Transport:    transport,
	}
	defer writer.Close()
	for round := range orders.Rounds {
		var batch []kafka.Message
		for each := range orders.Batch {
			number := round*orders.Batch + each
			batch = append(batch,
				kafka.Message{Key: orders.Key(number), Value: orders.Value(name, number)})
		}
		orders.Must(writer.WriteMessages(limited, batch...))
	}
}

func consume(limited context.Context) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:  probe.Servers(),
		GroupID:  group,
		Topic:    topic,
		MaxBytes: 100,
		MaxWait:  100 * time.Millisecond,
		Dialer:   &kafka.Dialer{ClientID: name, Timeout: 10 * time.Second},
	})
	defer reader.Close()
	for count := range orders.Rounds * orders.Batch {
		record, err := reader.FetchMessage(limited)
		orders.Must(err)
		if count%orders.Batch == 0 {
			orders.Must(reader.CommitMessages(limited, record))
		}
	}
}

func describe(limited context.Context, client *kafka.Client) {
	for range 3 {
		_, err := client.Metadata(limited, &kafka.MetadataRequest{Topics: []string{topic}})
		orders.Must(err)
		_, err = client.ListOffsets(limited, &kafka.ListOffsetsRequest{
			Topics: map[string][]kafka.OffsetRequest{topic: {kafka.LastOffsetOf(0)}},
		})
		orders.Must(err)
		_, err = client.ListGroups(limited, &kafka.ListGroupsRequest{})
		orders.Must(err)
		_, err = client.DescribeGroups(limited, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
		orders.Must(err)
		_, err = client.OffsetFetch(limited, &kafka.OffsetFetchRequest{
			GroupID: group, Topics: map[string][]int{topic: {0, 1, 2}},
		})
		orders.Must(err)
		_, err = client.DescribeConfigs(limited, &kafka.DescribeConfigsRequest{
			Resources: []kafka.DescribeConfigRequestResource{
				{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic},
			},
		})
		orders.Must(err)
	}
}

func main() {
	limited, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	transport := &kafka.Transport{ClientID: name}
	client := &kafka.Client{Addr: kafka.TCP(probe.Servers()...), Transport: transport}
	_, err := client.CreateTopics(limited, &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{
			{Topic: topic, NumPartitions: orders.Partitions, ReplicationFactor: 1},
		},
	})
	orders.Must(err)
	produce(limited, transport)
	consume(limited)
	describe(limited, client)
	_, err = client.DeleteTopics(limited, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	orders.Must(err)
}
