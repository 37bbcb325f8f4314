// Traffic of kafkajs: its admin client, a producer, a group, and transactions.

import kafkajs from 'kafkajs'

import { BATCH, order, PARTITIONS, ROUNDS } from './traffic.js'
import { servers } from './probe.js'

const topic = 'kafkajs-orders'
const groupId = 'kafkajs-readers'
const client = new kafkajs.Kafka({
  clientId: 'kafkajs',
  brokers: servers,
  logLevel: kafkajs.logLevel.ERROR
})

async function produce () {
  const producer = client.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
  await producer.connect()
  for (let round = 0; round < ROUNDS; round++) {
    const messages = Array.from({ length: BATCH }, (_, each) => order('kafkajs', round * BATCH + each))
    await producer.send({ topic, messages })
  }
  await producer.disconnect()
}

async function transact () {
  const producer = client.producer({
    transactionalId: 'kafkajs-transactions', idempotent: true, maxInFlightRequests: 1
  })
  await producer.connect()
  for (let round = 0; round < 6; round++) {
    const transaction = await producer.transaction()
    await transaction.send({ topic, messages: [order('kafkajs', round)] })
    await (round % 3 === 2 ? transaction.abort() : transaction.commit())
  }
  await producer.disconnect()
}

async function consume () {
  const consumer = client.consumer({ groupId, maxBytesPerPartition: 100, maxWaitTimeInMs: 200 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  let count = 0
  await new Promise((resolve, reject) => consumer.run({
    autoCommitThreshold: BATCH,
    eachMessage: async () => ++count === ROUNDS * BATCH && resolve()
  }).catch(reject))
  await consumer.disconnect()
}

const admin = client.admin()
await admin.connect()
await admin.createTopics({ topics: [{ topic, numPartitions: PARTITIONS }] })
await produce()
await transact()
await consume()
for (let round = 0; round < 3; round++) {
  await admin.fetchTopicMetadata({ topics: [topic] })
  await admin.fetchTopicOffsets(topic)
  await admin.fetchOffsets({ groupId, topics: [topic] })
  await admin.listGroups()
  await admin.describeGroups([groupId])
  await admin.describeConfigs({
    includeSynonyms: false, resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }]
  })
}
await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '5' }] })
await admin.deleteGroups([groupId])
await admin.deleteTopics({ topics: [topic] })
await admin.disconnect()
