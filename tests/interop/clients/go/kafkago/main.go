// The probe of segmentio/kafka-go: its client for cluster and topic, its reader for records.
package main

import (
	"context"
	"errors"

	"github.com/segmentio/kafka-go"

	"kraftwire/probes/probe"
)

func client() *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(probe.Servers()...), Timeout: probe.Patience}
}

func connect() (string, error) {
	limited, cancel := context.WithTimeout(context.Background(), probe.Patience)
	defer cancel()
	if _, err := client().ApiVersions(limited, &kafka.ApiVersionsRequest{}); err != nil {
		return "", err
	}
	metadata, err := client().Metadata(limited, &kafka.MetadataRequest{})
	if err != nil {
		return "", err
	}
	isWhole := len(metadata.Brokers) == 3 && len(metadata.ClusterID) == 22
	return "3 brokers", probe.Expect(isWhole, "found %+v", metadata)
}

func describe() (string, error) {
	limited, cancel := context.WithTimeout(context.Background(), probe.Patience)
	defer cancel()
	metadata, err := client().Metadata(limited, &kafka.MetadataRequest{Topics: []string{probe.Topic}})
	if err != nil {
		return "", err
	}
	topic := metadata.Topics[0]
	if topic.Error != nil {
		return "", topic.Error
	}
	partition := topic.Partitions[0]
	return "topic, its leader", errors.Join(
		probe.Expect(topic.Name == probe.Topic && topic.Internal, "found %+v", topic),
		probe.Expect(partition.Leader.ID > 0 && len(partition.Replicas) == 3, "found %+v", partition),
	)
}

func read() (string, error) {
	limited, cancel := context.WithTimeout(context.Background(), probe.Patience)
	defer cancel()
	// The client's transport omits internal topics; the reader and this connection do not.
	leader, err := kafka.DialLeader(limited, "tcp", probe.Servers()[0], probe.Topic, 0)
	if err != nil {
		return "", err
	}
	defer leader.Close()
	end, err := leader.ReadLastOffset()
	if err != nil {
		return "", err
	}
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: probe.Servers(), Topic: probe.Topic})
	defer reader.Close()
	records := &probe.Records{}
	for !records.Reached(end) {
		record, err := reader.ReadMessage(limited)
		if err != nil {
			return "", err
		}
		// This reader shows control records too; those have keys, metadata records have none.
		if len(record.Key) == 0 {
			records.Add(record.Offset, record.Value)
		}
	}
	return records.Check(end)
}

func main() {
	probe.Run(
		"github.com/segmentio/kafka-go",
		probe.Step{Name: "connect", Take: connect},
		probe.Step{Name: "describe", Take: describe},
		probe.Step{Name: "read", Take: read},
	)
}
