// The probe of kafkajs: its admin client. Its consumer always joins a group, so nothing is read.

import kafkajs from 'kafkajs'

import { expect, login, run, servers, TOPIC } from './probe.js'

const client = new kafkajs.Kafka({
  clientId: 'probe',
  brokers: servers,
  logLevel: kafkajs.logLevel.NOTHING,
  ...(login && {
    ssl: { ca: [login.ca] },
    sasl: { mechanism: login.mechanism, username: login.user, password: login.password }
  })
})

async function asAdmin (ask) {
  const admin = client.admin()
  await admin.connect()
  try {
    return await ask(admin)
  } finally {
    await admin.disconnect()
  }
}

async function connect () {
  const cluster = await asAdmin(admin => admin.describeCluster())
  expect(cluster.brokers.length === 3 && cluster.clusterId.length === 22, cluster)
  return '3 brokers'
}

async function describe () {
  return asAdmin(async admin => {
    const names = await admin.listTopics()
    expect(names.includes(TOPIC), names)
    const { topics } = await admin.fetchTopicMetadata({ topics: [TOPIC] })
    const [partition] = topics[0].partitions
    expect([1, 2, 3].includes(partition.leader) && partition.replicas.length === 3, partition)
    const [offsets] = await admin.fetchTopicOffsets(TOPIC)
    expect(offsets.low === '0' && Number(offsets.high) > 0, offsets)
    return 'topic, its leader and offsets'
  })
}

await run('kafkajs', { connect, describe })
