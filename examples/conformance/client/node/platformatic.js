// @platformatic/kafka under `kwire conformance client --stdin`: npm install; node platformatic.js
import { Consumer, FetchIsolationLevels, Producer } from '@platformatic/kafka'
import { bytes, groups, reading, run, say, sleep, text } from './task.js'

function common ({ bootstrap, settings }) {
  const mechanism = settings['sasl.mechanism']
  return {
    clientId: 'platformatic',
    bootstrapBrokers: [bootstrap],
    timeout: Number(settings['request.timeout.ms']),
    requestTimeout: Number(settings['request.timeout.ms']),
    retries: 10,
    retryDelay: Number(settings['retry.backoff.ms']),
    ...(mechanism && { sasl: { mechanism, username: settings['sasl.username'], password: settings['sasl.password'] } })
  }
}

async function send (target, task, records, first) {
  const sent = []
  for (const group of groups(records, first)) {
    await sleep(group.wait)
    const messages = group.records.map(each => ({
      topic: task.topic,
      partition: each.partition,
      key: bytes(each.key) ?? undefined,
      value: bytes(each.value) ?? undefined,
      headers: new Map((each.headers ?? []).map(([k, v]) => [Buffer.from(k), bytes(v)]))
    }))
    const options = { messages, acks: task.settings.acks === '0' ? 0 : -1, compression: task.settings['compression.type'] ?? 'none' }
    sent.push(target.send(options).then(
      ({ offsets }) => group.records.forEach((each, i) => {
        const result = offsets?.find(found => found.partition === each.partition)
        const position = group.records.slice(0, i).filter(other => other.partition === each.partition).length
        say({ acked: group.first + i, offset: result ? Number(result.offset) + position : -1 })
      }),
      error => group.records.forEach((_, i) => say({ failed: group.first + i, error: reason(error) }))))
  }
  await Promise.all(sent)
}

// An error with those that it is made of.
function reason (error) {
  return [error.message, ...(error.errors ?? []).map(reason)].join('; ')
}

async function write (task) {
  const idempotent = task.settings['enable.idempotence'] === 'true' || task.do === 'transact'
  const producer = new Producer({ ...common(task), idempotent, transactionalId: task.transactional_id })
  try {
    if (task.do === 'produce') return await send(producer, task, task.records, 0)
    if (task.transactions.some(each => each.offsets)) {
      return say({ unsupported: 'offsets of a group that the client is not a member of' })
    }
    let number = 0
    for (const { records, end } of task.transactions) {
      const transaction = await producer.beginTransaction()
      await send(transaction, task, records, number)
      number += records.length
      await (end === 'commit' ? transaction.commit() : transaction.abort())
      say({ ended: end })
    }
  } finally {
    await producer.close(true).catch(() => {})
  }
}

async function consume (task) {
  const s = task.settings
  const consumer = new Consumer({
    ...common(task),
    groupId: task.group ?? `assigned-${task.id}`, // it has no assignment without a group
    ...(s['group.protocol'] === 'consumer'
      ? { groupProtocol: 'consumer' }
      : {
          sessionTimeout: Number(s['session.timeout.ms']),
          heartbeatInterval: Number(s['heartbeat.interval.ms']),
          rebalanceTimeout: Number(s['rebalance.timeout.ms'])
        }),
    ...(s['group.instance.id'] && { groupInstanceId: s['group.instance.id'] })
  })
  const { done, read } = reading(task.count)
  let last
  try {
    const from = task.offset === null ? {} : { offsets: [{ topic: task.topic, partition: task.partitions[0], offset: BigInt(task.offset) }] }
    const stream = await consumer.consume({
      topics: [task.topic],
      mode: task.offset === null ? 'committed' : 'manual',
      fallbackMode: s['auto.offset.reset'] === 'none' ? 'fail' : 'earliest',
      ...from,
      autocommit: false,
      maxWaitTime: Number(s['fetch.max.wait.ms']),
      isolationLevel: s['isolation.level'] === 'read_committed' ? FetchIsolationLevels.READ_COMMITTED : FetchIsolationLevels.READ_UNCOMMITTED,
      ...(s['fetch.max.bytes'] && { maxBytes: Number(s['fetch.max.bytes']) }),
      ...(s['max.partition.fetch.bytes'] && { maxBytesPerPartition: Number(s['max.partition.fetch.bytes']) })
    })
    const failed = new Promise((_resolve, reject) => stream.on('error', reject))
    stream.on('data', message => {
      const headers = [...message.headers].map(([k, v]) => [text(k), text(v)])
      say({ partition: message.partition, offset: Number(message.offset), timestamp: Number(message.timestamp), headers, key: text(message.key), value: text(message.value) })
      last = { ...last, [message.partition]: message }
      read()
    })
    await Promise.race([done, failed])
    if (task.commit) {
      for (const message of Object.values(last)) await message.commit()
      say({ committed: true })
    }
  } catch (error) {
    say({ error: reason(error) })
  } finally {
    await consumer.close(true).catch(() => {})
  }
}

run(task => (task.do === 'consume' ? consume(task) : write(task)))
