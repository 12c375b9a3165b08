// @platformatic/kafka as a runner: npm install; kwire conformance codec -- node runner.js
//
// It reads responses, varints and batches of magic 2. It has no reader of requests, and its writers take values one by one.
import * as platformatic from '@platformatic/kafka'
import { readSync, writeSync } from 'node:fs'

const { Reader, ResponseError, readRecordsBatches } = platformatic
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const VARINTS = { VARINT: 'readVarInt', VARLONG: 'readVarInt64', UNSIGNED_VARINT: 'readUnsignedVarInt' }

// A parser ends with createAPI(), which passes it to the connection in its argument.
function parser (type, version) {
  const name = type.replace(/Response$/, '')
  const api = platformatic[`${name[0].toLowerCase()}${name.slice(1)}V${version}`]?.api
  let found
  api?.({ send: (_key, _version, _request, parse) => { found = parse } })
  return found && (reader => found(0, api.key, version, reader))
}

// Kafka's JSON form of a value.
function json (value) {
  if (typeof value === 'bigint') return JSON.rawJSON(String(value))
  if (typeof value === 'string' && UUID.test(value)) return Buffer.from(value.replaceAll('-', ''), 'hex').toString('base64url')
  if (Array.isArray(value)) return value.map(json)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, json(each)]))
}

function bodyOf (reader, parse) {
  try {
    return parse(reader)
  } catch (error) {
    if (error instanceof ResponseError) return error.response // a response with error codes is thrown
    throw error
  }
}

function run ({ op, chapter, type, version, bytes }) {
  if (op === 'encode') return { unsupported: 'decodes only' }
  const reader = Reader.from(Buffer.from(bytes, 'hex'))
  if (type in VARINTS) return { value: json(reader[VARINTS[type]]()) }
  if (chapter === 'batches') {
    if (version < 2) return { unsupported: 'only batches of magic 2' }
    readRecordsBatches(reader)
    return { accepted: true }
  }
  const parse = chapter === 'messages' && type.endsWith('Response') && parser(type, version)
  if (!parse) return { unsupported: 'only responses, varints and batches' }
  const value = bodyOf(reader, parse)
  return type === 'FetchResponse' ? { accepted: true } : { value: json(value) } // its records are objects, not bytes
}

function read (size) {
  const data = Buffer.alloc(size)
  for (let at = 0; at < size;) {
    const count = readSync(0, data, at, size - at)
    if (count === 0) process.exit(0)
    at += count
  }
  return data
}

for (;;) {
  const task = JSON.parse(read(read(4).readInt32BE()))
  let response
  try {
    response = run(task)
  } catch (error) {
    response = { rejected: `${error.name}: ${error.message}` }
  }
  const text = Buffer.from(JSON.stringify(response))
  const frame = Buffer.alloc(4 + text.length)
  frame.writeInt32BE(text.length)
  text.copy(frame, 4)
  for (let at = 0; at < frame.length;) at += writeSync(1, frame, at)
}
