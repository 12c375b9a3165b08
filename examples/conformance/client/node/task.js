// Tasks of `kwire conformance client`, and what came of them.
import { createInterface } from 'node:readline'

export const say = line => console.log(JSON.stringify(line))
export const text = data => (data === null || data === undefined ? null : data.toString())
export const bytes = given => (given === null ? null : Buffer.from(given))
export const sleep = ms => new Promise(done => setTimeout(done, ms))

// Records that are sent together, with the number of the first: a pause begins another call.
export function groups (records, first = 0) {
  const found = []
  records.forEach((record, i) => {
    if (i === 0 || record.wait_ms) found.push({ first: first + i, wait: record.wait_ms ?? 0, records: [] })
    found.at(-1).records.push({ ...record, value: record.repeat ? record.value.repeat(record.repeat) : record.value })
  })
  return found
}

// Calls a function once `count` records are read and 300 ms have passed without another, or fails after 12 s.
export function reading (count) {
  let left = count, timer, finish
  const done = new Promise((resolve, reject) => {
    finish = resolve
    setTimeout(() => reject(new Error('records are missing, and the client reports no error')), 12000).unref()
  })
  return {
    done,
    read () {
      left -= 1
      clearTimeout(timer)
      if (left <= 0) timer = setTimeout(finish, 300)
    }
  }
}

export async function run (perform) {
  process.on('unhandledRejection', error => console.error(error))
  const lines = process.env.KWIRE_TASK ? [process.env.KWIRE_TASK] : createInterface({ input: process.stdin })
  for await (const line of lines) {
    const task = JSON.parse(line)
    await perform(task).catch(error => say({ error: `${error.name}: ${error.message}` }))
    say({ done: task.id })
  }
  process.exit(0)
}
