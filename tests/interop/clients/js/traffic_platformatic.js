// Traffic of @platformatic/kafka: its admin client, a producer, and a group.

import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'

import { BATCH, order, PARTITIONS, ROUNDS } from './traffic.js'
import { servers } from './probe.js'

const topic = 'platformatic-orders'
const groupId = 'platformatic-readers'
const options = { clientId: 'platformatic', bootstrapBrokers: servers, timeout: 20_000 }

async function produce () {
  const producer = new Producer({ ...options, serializers: stringSerializers })
  for (let round = 0; round < ROUNDS; round++) {
    const messages = Array.from(
      { length: BATCH }, (_, each) => ({ topic, ...order('platformatic', round * BATCH + each) })
    )
    await producer.send({ messages })
  }
  await producer.close()
}

async function consume () {
  const consumer = new Consumer({ ...options, groupId, deserializers: stringDeserializers })
  const stream = await consumer.consume({
    topics: [topic], mode: 'earliest', autocommit: false, maxBytes: 100, maxWaitTime: 200
  })
  let count = 0
  for await (const message of stream) {
    if (++count % BATCH === 0) {
      await message.commit()
    }
    if (count === ROUNDS * BATCH) {
      break
    }
  }
  await consumer.close(true)
}

const admin = new Admin(options)
await admin.createTopics({ topics: [topic], partitions: PARTITIONS, replicas: 1 })
await produce()
await consume()
for (let round = 0; round < 3; round++) {
  await admin.metadata({ topics: [topic] })
  await admin.listTopics()
  await admin.listGroups()
  await admin.describeGroups({ groups: [groupId] })
}
await admin.deleteTopics({ topics: [topic] })
await admin.close()
