// The probe of @platformatic/kafka: metadata, and fetches of one partition without a group.

import { Admin, Connection, Consumer, describeQuorumV2, metadataV12 } from '@platformatic/kafka'

import { expect, login, run, servers, TOPIC } from './probe.js'

const secured = login && {
  tls: { ca: login.ca },
  sasl: { mechanism: login.mechanism, username: login.user, password: login.password }
}
const options = { clientId: 'probe', bootstrapBrokers: servers, timeout: 20_000, ...secured }
const IS_CONTROL = 0x20
// The quorum writes one control record for each of its leaders.
const CONTROL_RECORDS_MAX = 10

async function closing (client, ask) {
  try {
    return await ask(client)
  } finally {
    await client.close()
  }
}

async function connect () {
  const metadata = await closing(new Admin(options), admin => admin.metadata({ topics: [] }))
  expect(metadata.brokers.size === 3 && metadata.id.length === 22, metadata)
  return '3 brokers'
}

// The client's own metadata omits internal topics; its calls for single requests do not.
async function asking (ask) {
  const [host, port] = servers[0].split(':')
  const connection = new Connection('probe', secured)
  await connection.connect(host, Number(port))
  return closing(connection, ask)
}

async function quorumTopic () {
  const { topics } = await asking(connection => metadataV12.api.async(connection, [TOPIC]))
  return topics[0]
}

async function describe () {
  const names = await closing(
    new Admin(options), admin => admin.listTopics({ includeInternals: true })
  )
  expect(names.includes(TOPIC), names)
  const topic = { topicName: TOPIC, partitions: [{ partitionIndex: 0 }] }
  const answer = await asking(connection => describeQuorumV2.api.async(connection, [topic]))
  const [quorum] = answer.topics[0].partitions
  expect(quorum.errorCode === 0 && quorum.currentVoters.length === 3, quorum)
  const { partitions: [{ leaderId }] } = await quorumTopic()
  expect([1, 2, 3].includes(leaderId) && leaderId === quorum.leaderId, { leaderId, quorum })
  return 'quorum of 3, its leader; topic'
}

async function read () {
  const topic = await quorumTopic()
  return closing(new Consumer({ ...options, groupId: 'probe' }), async consumer => {
    const offsets = []
    let highWatermark
    let next = 0n
    while (highWatermark === undefined || next < highWatermark) {
      const found = await fetch(consumer, topic, next)
      highWatermark ??= found.highWatermark
      for (const batch of found.records) {
        offsets.push(...metadataOffsets(batch))
        next = batch.firstOffset + BigInt(batch.lastOffsetDelta) + 1n
      }
    }
    const missing = Number(offsets.at(-1)) + 1 - offsets.length
    expect(missing <= CONTROL_RECORDS_MAX, { highWatermark, offsets })
    return `all up to the high watermark, from offset ${offsets[0]}`
  })
}

async function fetch (consumer, topic, fetchOffset) {
  const [{ leaderId, leaderEpoch }] = topic.partitions
  const partition = {
    partition: 0,
    currentLeaderEpoch: leaderEpoch,
    fetchOffset,
    lastFetchedEpoch: -1,
    partitionMaxBytes: 1 << 20
  }
  const response = await consumer.fetch({
    node: leaderId,
    topics: [{ topicId: topic.topicId, partitions: [partition] }],
    isolationLevel: 0,
    maxWaitTime: 1000
  })
  const [found] = response.responses[0].partitions
  expect(found.errorCode === 0 && found.records?.length > 0, found)
  return found
}

/** The offsets of a batch's records, none of a control batch. */
function metadataOffsets (batch) {
  if (batch.attributes & IS_CONTROL) {
    return []
  }
  // Every metadata record begins with the version of its frame.
  expect(batch.records.every(record => record.value[0] === 1), batch)
  return batch.records.map(record => batch.firstOffset + BigInt(record.offsetDelta))
}

await run('@platformatic/kafka', { connect, describe, read })
