// Traffic of @platformatic/kafka: its admin client, producers, transactions, groups of both protocols.

import {
  Admin,
  ConfigResourceTypes,
  Connection,
  Consumer,
  describeQuorumV2,
  IncrementalAlterConfigOperationTypes,
  Producer,
  stringDeserializers,
  stringSerializers
} from '@platformatic/kafka'

import { batch, BATCH, COUNT, MORE, order, PARTITIONS, RETENTION, TRANSACTIONS, until } from './traffic.js'
import { expect, run, servers, TOPIC } from './probe.js'

const topic = 'platformatic-orders'
const readers = { groupId: 'platformatic-readers' }
const watchers = { groupId: 'platformatic-watchers', groupProtocol: 'consumer' }
const options = { clientId: 'platformatic', bootstrapBrokers: servers, timeout: 20_000 }
const admin = new Admin(options)

async function cluster () {
  const metadata = await admin.metadata({ topics: [] })
  expect(metadata.id.length === 22, metadata)
  return `${metadata.brokers.size} brokers`
}

async function asking (ask) {
  const [host, port] = servers[0].split(':')
  const connection = new Connection(options.clientId)
  await connection.connect(host, Number(port))
  try {
    return await ask(connection)
  } finally {
    await connection.close()
  }
}

// The admin client has no call for the quorum.
async function quorum () {
  const asked = { topicName: TOPIC, partitions: [{ partitionIndex: 0 }] }
  const answer = await asking(connection => describeQuorumV2.api.async(connection, [asked]))
  const [found] = answer.topics[0].partitions
  expect(found.errorCode === 0 && found.leaderId > 0, found)
  return `${found.currentVoters.length} voters`
}

async function topics () {
  await admin.createTopics({ topics: [topic], partitions: PARTITIONS - 1, replicas: -1 })
  await admin.createPartitions({ topics: [{ name: topic, count: PARTITIONS, assignments: null }] })
  let found
  await until(async () => {
    const metadata = await admin.metadata({ topics: [topic], forceUpdate: true })
    found = metadata.topics.get(topic).partitions
    return found.length === PARTITIONS
  })
  return `${PARTITIONS} partitions of ${found[0].replicas.length} replicas`
}

async function configs () {
  const resource = { resourceType: ConfigResourceTypes.TOPIC, resourceName: topic }
  const change = {
    name: 'retention.ms', configOperation: IncrementalAlterConfigOperationTypes.SET, value: RETENTION
  }
  await admin.incrementalAlterConfigs({ resources: [{ ...resource, configs: [change] }] })
  let found
  await until(async () => {
    [{ configs: found }] = await admin.describeConfigs({ resources: [resource] })
    return found.some(each => each.name === 'retention.ms' && each.value === RETENTION)
  })
  return `${found.length} properties`
}

async function produce (count, idempotent) {
  const producer = new Producer({ ...options, idempotent, serializers: stringSerializers })
  for (let start = 0; start < count; start += BATCH) {
    const messages = batch('platformatic', start).map(each => ({ topic, ...each }))
    await producer.send({ messages })
  }
  await producer.close()
  return `${count} records`
}

async function consume (group) {
  const consumer = new Consumer({ ...options, ...group, deserializers: stringDeserializers })
  const stream = await consumer.consume({
    topics: [topic], mode: 'earliest', autocommit: false, maxBytes: 100, maxWaitTime: 200
  })
  let count = 0
  for await (const message of stream) {
    if (++count % BATCH === 0) {
      await message.commit()
    }
    if (count === COUNT + MORE) {
      break
    }
  }
  await consumer.close(true)
  return `${count} records`
}

async function groups () {
  const listed = await admin.listGroups({ types: ['classic', 'consumer'] })
  expect(listed.has(readers.groupId) && listed.has(watchers.groupId), [...listed.keys()])
  const described = await admin.describeGroups({ groups: [readers.groupId] })
  const [offsets] = await admin.listConsumerGroupOffsets({ groups: [readers.groupId] })
  const { state } = described.get(readers.groupId)
  return `${state}, offsets of ${offsets.topics[0].partitions.length} partitions`
}

async function transactions () {
  const producer = new Producer({
    ...options,
    idempotent: true,
    transactionalId: 'platformatic-transactions',
    serializers: stringSerializers
  })
  try {
    for (let round = 0; round < TRANSACTIONS; round++) {
      const transaction = await producer.beginTransaction()
      await transaction.send({ messages: [{ topic, ...order('platformatic', round) }] })
      await (round % 3 === 2 ? transaction.abort() : transaction.commit())
    }
  } finally {
    // An open producer keeps the program from ending.
    await producer.close()
  }
  return `${TRANSACTIONS} transactions`
}

async function remove () {
  await admin.deleteRecords({
    topics: [{ name: topic, partitions: [{ partition: 0, offset: 5n }] }]
  })
  await admin.deleteGroups({ groups: [readers.groupId, watchers.groupId] })
  await admin.deleteTopics({ topics: [topic] })
  await until(async () => !(await admin.listTopics()).includes(topic))
  return 'records, groups, topic'
}

await run('@platformatic/kafka', {
  cluster,
  quorum,
  topics,
  configs,
  produce: () => produce(COUNT, false),
  idempotent: () => produce(MORE, true),
  classic: () => consume(readers),
  consumer: () => consume(watchers),
  groups,
  transactions,
  delete: remove
})
await admin.close()
