// The probe of sarama: cluster and topic through its admin client, and a partition's consumer.
package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"

	"kraftwire/probes/probe"
)

func config() *sarama.Config {
	made := sarama.NewConfig()
	made.ClientID = "probe"
	// Its requests follow the configured release; the default is an old one.
	made.Version = sarama.MaxVersion
	if login := probe.LoggingIn(); login != nil {
		logIn(made, login)
	}
	return made
}

func logIn(made *sarama.Config, login *probe.Login) {
	made.Net.TLS.Enable, made.Net.TLS.Config = true, login.TLS()
	made.Net.SASL.Enable = true
	made.Net.SASL.User, made.Net.SASL.Password = login.User, login.Password
	made.Net.SASL.Mechanism = sarama.SASLMechanism(login.Mechanism)
	algorithm := scram.SHA256
	if login.Mechanism == "SCRAM-SHA-512" {
		algorithm = scram.SHA512
	}
	made.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
		return &conversation{algorithm: algorithm}
	}
}

// sarama has SCRAM's messages from its user.
type conversation struct {
	algorithm scram.HashGeneratorFcn
	*scram.ClientConversation
}

func (c *conversation) Begin(user, password, authzID string) error {
	client, err := c.algorithm.NewClient(user, password, authzID)
	if err == nil {
		c.ClientConversation = client.NewConversation()
	}
	return err
}

func connect() (string, error) {
	admin, err := sarama.NewClusterAdmin(probe.Servers(), config())
	if err != nil {
		return "", err
	}
	defer admin.Close()
	brokers, controller, err := admin.DescribeCluster()
	if err != nil {
		return "", err
	}
	isWhole := len(brokers) == 3 && controller > 0
	return "3 brokers", probe.Expect(isWhole, "%d brokers, controller %d", len(brokers), controller)
}

func describe() (string, error) {
	admin, err := sarama.NewClusterAdmin(probe.Servers(), config())
	if err != nil {
		return "", err
	}
	defer admin.Close()
	names, err := admin.ListTopics()
	if err != nil {
		return "", err
	}
	_, isListed := names[probe.Topic]
	topics, err := admin.DescribeTopics([]string{probe.Topic})
	if err != nil {
		return "", err
	}
	partition := topics[0].Partitions[0]
	return "topic, its leader", errors.Join(
		probe.Expect(isListed, "listed are %v", names),
		probe.Expect(partition.Leader > 0 && len(partition.Replicas) == 3, "found %+v", partition),
	)
}

func read() (string, error) {
	client, err := sarama.NewClient(probe.Servers(), config())
	if err != nil {
		return "", err
	}
	defer client.Close()
	end, err := client.GetOffset(probe.Topic, 0, sarama.OffsetNewest)
	if err != nil {
		return "", err
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return "", err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(probe.Topic, 0, sarama.OffsetOldest)
	if err != nil {
		return "", err
	}
	defer partition.Close()
	records := &probe.Records{}
	deadline := time.After(probe.Patience)
	for !records.Reached(end) {
		select {
		case record := <-partition.Messages():
			records.Add(record.Offset, record.Value)
		case <-deadline:
			return "", fmt.Errorf("not all records in time: %+v", *records)
		}
	}
	return records.Check(end)
}

func main() {
	probe.Run(
		"github.com/IBM/sarama",
		probe.Step{Name: "connect", Take: connect},
		probe.Step{Name: "describe", Take: describe},
		probe.Step{Name: "read", Take: read},
	)
}
