// The probe of franz-go: kadm for cluster and topic, the client itself for quorum and records.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"kraftwire/probes/probe"
)

func client(more ...kgo.Opt) (*kgo.Client, context.Context, func(), error) {
	options := append([]kgo.Opt{kgo.SeedBrokers(probe.Servers()...), kgo.ClientID("probe")}, more...)
	if login := probe.LoggingIn(); login != nil {
		options = append(options, kgo.SASL(mechanism(login)), kgo.DialTLSConfig(login.TLS()))
	}
	opened, err := kgo.NewClient(options...)
	if err != nil {
		return nil, nil, nil, err
	}
	limited, cancel := context.WithTimeout(context.Background(), probe.Patience)
	return opened, limited, func() { cancel(); opened.Close() }, nil
}

func mechanism(login *probe.Login) sasl.Mechanism {
	user := scram.Auth{User: login.User, Pass: login.Password}
	switch login.Mechanism {
	case "SCRAM-SHA-256":
		return user.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return user.AsSha512Mechanism()
	}
	return plain.Auth{User: login.User, Pass: login.Password}.AsMechanism()
}

func connect() (string, error) {
	opened, limited, finish, err := client()
	if err != nil {
		return "", err
	}
	defer finish()
	metadata, err := kadm.NewClient(opened).BrokerMetadata(limited)
	if err != nil {
		return "", err
	}
	isWhole := len(metadata.Brokers) == 3 && len(metadata.Cluster) == 22
	return "3 brokers", probe.Expect(isWhole, "found %+v", metadata)
}

func describe() (string, error) {
	opened, limited, finish, err := client()
	if err != nil {
		return "", err
	}
	defer finish()
	admin := kadm.NewClient(opened)
	topics, err := admin.ListTopicsWithInternal(limited, probe.Topic)
	if err != nil {
		return "", err
	}
	versions, err := admin.ApiVersions(limited)
	if err != nil {
		return "", err
	}
	quorum, err := describeQuorum(limited, opened)
	if err != nil {
		return "", err
	}
	leader := topics[probe.Topic].Partitions[0].Leader
	return "quorum of 3, its leader; topic; versions of 3 brokers", errors.Join(
		probe.Expect(quorum.LeaderID > 0 && len(quorum.CurrentVoters) == 3, "quorum %+v", quorum),
		probe.Expect(leader == quorum.LeaderID, "topic's leader %d, quorum %+v", leader, quorum),
		probe.Expect(len(versions) == 3, "versions of %d brokers", len(versions)),
	)
}

// kadm has no call for the quorum, but the client can send the request.
func describeQuorum(
	limited context.Context, opened *kgo.Client,
) (found kmsg.DescribeQuorumResponseTopicPartition, err error) {
	topic := kmsg.NewDescribeQuorumRequestTopic()
	topic.Topic = probe.Topic
	topic.Partitions = append(topic.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	request := kmsg.NewPtrDescribeQuorumRequest()
	request.Topics = append(request.Topics, topic)
	response, err := request.RequestWith(limited, opened)
	if err != nil {
		return found, err
	}
	if response.ErrorCode != 0 || len(response.Topics) != 1 {
		return found, fmt.Errorf("found %+v", response)
	}
	found = response.Topics[0].Partitions[0]
	return found, probe.Expect(found.ErrorCode == 0, "found %+v", found)
}

func read() (string, error) {
	start := map[string]map[int32]kgo.Offset{probe.Topic: {0: kgo.NewOffset().AtStart()}}
	opened, limited, finish, err := client(kgo.ConsumePartitions(start))
	if err != nil {
		return "", err
	}
	defer finish()
	ends, err := kadm.NewClient(opened).ListEndOffsets(limited, probe.Topic)
	if err != nil {
		return "", err
	}
	end, _ := ends.Lookup(probe.Topic, 0)
	if end.Err != nil {
		return "", end.Err
	}
	records := &probe.Records{}
	for !records.Reached(end.Offset) {
		fetches := opened.PollFetches(limited)
		if err := fetches.Err(); err != nil {
			return "", err
		}
		fetches.EachRecord(func(r *kgo.Record) { records.Add(r.Offset, r.Value) })
	}
	return records.Check(end.Offset)
}

func main() {
	probe.Run(
		"github.com/twmb/franz-go",
		probe.Step{Name: "connect", Take: connect},
		probe.Step{Name: "describe", Take: describe},
		probe.Step{Name: "read", Take: read},
	)
}
