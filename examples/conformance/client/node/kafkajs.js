// KafkaJS under `kwire conformance client --stdin`: npm install; node kafkajs.js
import kafkajs from 'kafkajs'
import { bytes, groups, reading, run, say, sleep, text } from './task.js'

const { CompressionTypes, Kafka, logLevel } = kafkajs

function client ({ bootstrap, settings }) {
  const mechanism = settings['sasl.mechanism']?.toLowerCase()
  return new Kafka({
    brokers: [bootstrap],
    logLevel: logLevel.NOTHING,
    requestTimeout: Number(settings['request.timeout.ms']),
    connectionTimeout: 3000,
    reauthenticationThreshold: 500, // sessions of the scenarios are shorter than the default
    retry: { retries: 10, initialRetryTime: Number(settings['retry.backoff.ms']), maxRetryTime: Number(settings['retry.backoff.max.ms']) },
    ...(mechanism && { sasl: { mechanism, username: settings['sasl.username'], password: settings['sasl.password'] } })
  })
}

async function send (target, task, records, first) {
  const sent = []
  for (const group of groups(records, first)) {
    await sleep(group.wait)
    const messages = group.records.map(each => ({
      key: bytes(each.key),
      value: bytes(each.value),
      partition: each.partition,
      headers: (each.headers ?? []).reduce((all, [k, v]) => ({ ...all, [k]: [...(all[k] ?? []), bytes(v)] }), {})
    }))
    const options = { topic: task.topic, messages, acks: task.settings.acks === '0' ? 0 : -1, timeout: 3000 }
    const codec = task.settings['compression.type']
    if (codec) options.compression = CompressionTypes[codec.toUpperCase()]
    sent.push(target.send(options).then(
      results => group.records.forEach((each, i) => {
        const result = results?.find(found => found.partition === each.partition)
        const position = group.records.slice(0, i).filter(other => other.partition === each.partition).length
        say({ acked: group.first + i, offset: result?.baseOffset ? Number(result.baseOffset) + position : -1 })
      }),
      error => group.records.forEach((_, i) => say({ failed: group.first + i, error: `${error.name}: ${error.message}` }))))
  }
  await Promise.all(sent)
}

async function write (task) {
  const idempotent = task.settings['enable.idempotence'] === 'true' || task.do === 'transact'
  const producer = client(task).producer({
    allowAutoTopicCreation: false,
    idempotent,
    maxInFlightRequests: idempotent ? 1 : Number(task.settings['max.in.flight.requests.per.connection'] ?? 5), // as its pages say
    transactionalId: task.transactional_id
  })
  await producer.connect()
  try {
    if (task.do === 'produce') return await send(producer, task, task.records, 0)
    let number = 0
    for (const { records, end, offsets } of task.transactions) {
      const transaction = await producer.transaction()
      await send(transaction, task, records, number)
      number += records.length
      if (offsets) {
        const partitions = [{ partition: offsets.partition, offset: String(offsets.offset) }]
        await transaction.sendOffsets({ consumerGroupId: offsets.group, topics: [{ topic: task.topic, partitions }] })
      }
      await (end === 'commit' ? transaction.commit() : transaction.abort())
      say({ ended: end })
    }
  } finally {
    await producer.disconnect()
  }
}

async function consume (task) {
  const s = task.settings
  if (s['auto.offset.reset'] === 'none') return say({ unsupported: 'KafkaJS has no auto.offset.reset=none' })
  if (s['group.protocol'] === 'consumer') return say({ unsupported: 'KafkaJS has no consumer protocol' })
  const consumer = client(task).consumer({
    groupId: task.group ?? `assigned-${task.id}`, // it has no assignment without a group
    sessionTimeout: Number(s['session.timeout.ms']),
    heartbeatInterval: Number(s['heartbeat.interval.ms']),
    rebalanceTimeout: Number(s['rebalance.timeout.ms']),
    maxWaitTimeInMs: Number(s['fetch.max.wait.ms']),
    readUncommitted: s['isolation.level'] !== 'read_committed',
    ...(s['max.partition.fetch.bytes'] && { maxBytesPerPartition: Number(s['max.partition.fetch.bytes']) }),
    ...(s['fetch.max.bytes'] && { maxBytes: Number(s['fetch.max.bytes']) })
  })
  const { done, read } = reading(task.count)
  const next = {}
  const crashed = new Promise((_resolve, reject) => consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error)))
  await consumer.connect()
  try {
    await consumer.subscribe({ topic: task.topic, fromBeginning: true })
    await consumer.run({
      autoCommit: task.group === null, // after some errors it reads again from the committed offset
      eachMessage: async ({ partition, message }) => {
        const headers = Object.entries(message.headers ?? {}).flatMap(([k, v]) => [v].flat().map(each => [k, text(each)]))
        say({ partition, offset: Number(message.offset), timestamp: Number(message.timestamp), headers, key: text(message.key), value: text(message.value) })
        next[partition] = String(BigInt(message.offset) + 1n)
        read()
      }
    })
    if (task.offset !== null) consumer.seek({ topic: task.topic, partition: task.partitions[0], offset: String(task.offset) })
    await Promise.race([done, crashed])
    if (task.commit) {
      await consumer.commitOffsets(Object.entries(next).map(([partition, offset]) => ({ topic: task.topic, partition: Number(partition), offset })))
      say({ committed: true })
    }
  } finally {
    await consumer.disconnect()
  }
}

run(task => (task.do === 'consume' ? consume(task) : write(task)))
