// The probe of segmentio/kafka-go: its client for cluster and topic, its reader for records.
package main

import (
	"context"
	"errors"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"kraftwire/probes/probe"
)

func client() *kafka.Client {
	made := &kafka.Client{Addr: kafka.TCP(probe.Servers()...), Timeout: probe.Patience}
	if login := probe.LoggingIn(); login != nil {
		made.Transport = &kafka.Transport{TLS: login.TLS(), SASL: mechanism(login)}
	}
	return made
}

func dialer() *kafka.Dialer {
	made := &kafka.Dialer{Timeout: probe.Patience, DualStack: true}
	if login := probe.LoggingIn(); login != nil {
		made.TLS, made.SASLMechanism = login.TLS(), mechanism(login)
	}
	return made
}

func mechanism(login *probe.Login) sasl.Mechanism {
	if login.Mechanism == "PLAIN" {
		return plain.Mechanism{Username: login.User, Password: login.Password}
	}
	algorithm := scram.SHA256
	if login.Mechanism == "SCRAM-SHA-512" {
		algorithm = scram.SHA512
	}
	made, err := scram.Mechanism(algorithm, login.User, login.Password)
	if err != nil {
		panic(err)
	}
	return made
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
	leader, err := dialer().DialLeader(limited, "tcp", probe.Servers()[0], probe.Topic, 0)
	if err != nil {
		return "", err
	}
	defer leader.Close()
	end, err := leader.ReadLastOffset()
	if err != nil {
		return "", err
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: probe.Servers(), Topic: probe.Topic, Dialer: dialer(),
	})
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
