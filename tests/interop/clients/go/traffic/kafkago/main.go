// Traffic of segmentio/kafka-go: its client, its writer, and a reader in a group.
package main

import (
	"context"
	"fmt"
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

var (
	transport = &kafka.Transport{ClientID: name}
	client    = &kafka.Client{Addr: kafka.TCP(probe.Servers()...), Transport: transport}
)

func cluster(limited context.Context) string {
	found, err := client.Metadata(limited, &kafka.MetadataRequest{})
	orders.Must(err)
	orders.Expect(len(found.ClusterID) == 22, "found %+v", found)
	return fmt.Sprintf("%d brokers", len(found.Brokers))
}

func topics(limited context.Context) string {
	created, err := client.CreateTopics(limited, &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{
			{Topic: topic, NumPartitions: orders.Partitions - 1, ReplicationFactor: -1},
		},
	})
	orders.Must(err)
	orders.Must(created.Errors[topic])
	resized, err := client.CreatePartitions(limited, &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: orders.Partitions}},
	})
	orders.Must(err)
	orders.Must(resized.Errors[topic])
	var found kafka.Topic
	orders.Until(limited, func() bool {
		found = described(limited)
		return len(found.Partitions) == orders.Partitions
	})
	return fmt.Sprintf("%d partitions of %d replicas",
		len(found.Partitions), len(found.Partitions[0].Replicas))
}

func described(limited context.Context) kafka.Topic {
	found, err := client.Metadata(limited, &kafka.MetadataRequest{Topics: []string{topic}})
	orders.Must(err)
	return found.Topics[0]
}

func configs(limited context.Context) string {
	altered, err := client.IncrementalAlterConfigs(limited, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic,
			ResourceName: topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{
				{Name: "retention.ms", Value: orders.Retention},
			},
		}},
	})
	orders.Must(err)
	orders.Must(altered.Resources[0].Error)
	var count int
	orders.Until(limited, func() bool {
		found, err := client.DescribeConfigs(limited, &kafka.DescribeConfigsRequest{
			Resources: []kafka.DescribeConfigRequestResource{
				{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic},
			},
		})
		orders.Must(err)
		count = len(found.Resources[0].ConfigEntries)
		for _, entry := range found.Resources[0].ConfigEntries {
			if entry.ConfigName == "retention.ms" && entry.ConfigValue == orders.Retention {
				return true
			}
		}
		return false
	})
	return fmt.Sprintf("%d properties", count)
}

func produce(limited context.Context) string {
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
	return fmt.Sprintf("%d records", orders.Count)
}

func classic(limited context.Context) string {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:  probe.Servers(),
		GroupID:  group,
		Topic:    topic,
		MaxBytes: 100,
		MaxWait:  100 * time.Millisecond,
		Dialer:   &kafka.Dialer{ClientID: name, Timeout: 10 * time.Second},
	})
	defer reader.Close()
	for count := range orders.Count {
		record, err := reader.FetchMessage(limited)
		orders.Must(err)
		if count%orders.Batch == 0 || count == orders.Count-1 {
			orders.Must(reader.CommitMessages(limited, record))
		}
	}
	return fmt.Sprintf("%d records", orders.Count)
}

func groups(limited context.Context) string {
	listed, err := client.ListGroups(limited, &kafka.ListGroupsRequest{})
	orders.Must(err)
	orders.Must(listed.Error)
	request := &kafka.DescribeGroupsRequest{GroupIDs: []string{group}}
	described, err := client.DescribeGroups(limited, request)
	orders.Must(err)
	orders.Must(described.Groups[0].Error)
	offsets, err := client.OffsetFetch(limited, &kafka.OffsetFetchRequest{
		GroupID: group, Topics: map[string][]int{topic: {0, 1, 2}},
	})
	orders.Must(err)
	orders.Must(offsets.Error)
	_, err = client.ListOffsets(limited, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{topic: {kafka.LastOffsetOf(0)}},
	})
	orders.Must(err)
	return fmt.Sprintf("%s, offsets of %d partitions",
		described.Groups[0].GroupState, len(offsets.Topics[topic]))
}

func remove(limited context.Context) string {
	gone, err := client.DeleteGroups(limited, &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
	orders.Must(err)
	orders.Must(gone.Errors[group])
	deleted, err := client.DeleteTopics(limited, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	orders.Must(err)
	orders.Must(deleted.Errors[topic])
	return "group, topic"
}

func main() {
	probe.Run(
		"github.com/segmentio/kafka-go",
		orders.Step("cluster", cluster),
		orders.Step("topics", topics),
		orders.Step("configs", configs),
		orders.Step("produce", produce),
		orders.Step("classic", classic),
		orders.Step("groups", groups),
		orders.Step("delete", remove),
	)
}
