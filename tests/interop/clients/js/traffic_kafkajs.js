// Traffic of kafkajs: its admin client, producers, transactions, and a group.

import kafkajs from 'kafkajs'

import { batch, BATCH, COUNT, MORE, order, PARTITIONS, RETENTION, TRANSACTIONS, until } from './traffic.js'
import { expect, run, servers } from './probe.js'

const topic = 'kafkajs-orders'
const groupId = 'kafkajs-readers'
const client = new kafkajs.Kafka({
  clientId: 'kafkajs',
  brokers: servers,
  logLevel: kafkajs.logLevel.NOTHING
})
const admin = client.admin()

async function cluster () {
  const { brokers, clusterId } = await admin.describeCluster()
  expect(clusterId.length === 22, clusterId)
  return `${brokers.length} brokers`
}

async function topics () {
  await admin.createTopics({ topics: [{ topic, numPartitions: PARTITIONS - 1 }] })
  await admin.createPartitions({ topicPartitions: [{ topic, count: PARTITIONS }] })
  await until(async () => (await partitions()).length === PARTITIONS)
  const [{ replicas }] = await partitions()
  return `${PARTITIONS} partitions of ${replicas.length} replicas`
}

async function partitions () {
  const found = await admin.fetchTopicMetadata({ topics: [topic] })
  return found.topics[0].partitions
}

async function configs () {
  const resource = { type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }
  const configEntries = [{ name: 'retention.ms', value: RETENTION }]
  await admin.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries }] })
  let entries
  await until(async () => {
    const found = await admin.describeConfigs({ includeSynonyms: false, resources: [resource] })
    entries = found.resources[0].configEntries
    return entries.some(each => each.configName === 'retention.ms' && each.configValue === RETENTION)
  })
  return `${entries.length} properties`
}

async function connected (client, use) {
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.disconnect()
  }
}

const createPartitioner = kafkajs.Partitioners.DefaultPartitioner

async function produce (count, options) {
  return connected(client.producer({ createPartitioner, ...options }), async producer => {
    for (let start = 0; start < count; start += BATCH) {
      await producer.send({ topic, acks: -1, messages: batch('kafkajs', start) })
    }
    return `${count} records`
  })
}

async function transactions () {
  const options = {
    createPartitioner, transactionalId: 'kafkajs-transactions', idempotent: true, maxInFlightRequests: 1
  }
  await connected(client.producer(options), async producer => {
    for (let round = 0; round < TRANSACTIONS; round++) {
      const transaction = await producer.transaction()
      await transaction.send({ topic, messages: [order('kafkajs', round)] })
      const partition = { partition: 0, offset: String(round) }
      await transaction.sendOffsets({
        consumerGroupId: 'kafkajs-ledger', topics: [{ topic, partitions: [partition] }]
      })
      await (round % 3 === 2 ? transaction.abort() : transaction.commit())
    }
  })
  const [found] = await admin.fetchOffsets({ groupId: 'kafkajs-ledger', topics: [topic] })
  return `offset ${found.partitions.find(each => each.partition === 0).offset}`
}

async function classic () {
  const options = { groupId, maxBytesPerPartition: 100, maxWaitTimeInMs: 200 }
  return connected(client.consumer(options), async consumer => {
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    let count = 0
    await new Promise((resolve, reject) => consumer.run({
      autoCommitThreshold: BATCH,
      eachMessage: async () => ++count === COUNT + MORE && resolve()
    }).catch(reject))
    return `${count} records`
  })
}

async function groups () {
  const listed = await admin.listGroups()
  expect(listed.groups.some(group => group.groupId === groupId), listed)
  const described = await admin.describeGroups([groupId])
  await admin.fetchTopicOffsets(topic)
  const [offsets] = await admin.fetchOffsets({ groupId, topics: [topic] })
  return `${described.groups[0].state}, offsets of ${offsets.partitions.length} partitions`
}

async function remove () {
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '5' }] })
  await admin.deleteGroups([groupId])
  await admin.deleteTopics({ topics: [topic] })
  await until(async () => !(await admin.listTopics()).includes(topic))
  return 'records, group, topic'
}

await admin.connect()
await run('kafkajs', {
  cluster,
  topics,
  configs,
  produce: () => produce(COUNT, {}),
  idempotent: () => produce(MORE, { idempotent: true, maxInFlightRequests: 1 }),
  classic,
  groups,
  transactions,
  delete: remove
})
await admin.disconnect()
