import { idleRecorder } from '../support/idle-recorder.ts'
import { AccessEntries } from '../../src/access/access-entries.ts'
import { removePolicy } from '../../src/delivery/sts/policy-removal.ts'
import { once } from 'node:events'
import { request } from 'node:http'
import { statSync } from 'node:fs'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DestinationPolicies } from '../../src/config/destination-policies.ts'
import { defaultConfig } from '../../src/config/load.ts'
import { controlPath } from '../../src/daemon/admin/socket-path.ts'
import { ControlServer } from '../../src/daemon/control-server.ts'
import { Operations } from '../../src/queue/operations.ts'
import type { BulkOperation } from '../../src/queue/operation-request.ts'
import { storedScheduler } from '../../src/queue/stored-scheduler.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { openInlineStore } from '../../src/store/sqlite/inline-store.ts'
import { openQueueReader } from '../../src/store/sqlite/sqlite-reader.ts'
import { Events } from '../../src/telemetry/events.ts'
import { queue } from '../conformance/mail.ts'
import { NO_MOVES } from '../support/no-moves.ts'
import { responsesIn, writeThenRead } from '../support/raw-http.ts'
import { RETENTION } from '../support/operate.ts'
import { NOW, Operator } from '../support/operator.ts'

const policies = new DestinationPolicies(defaultConfig('h').config)

let operator: Operator
let server: ControlServer
let close: () => Promise<void>

beforeEach(async () => {
  operator = new Operator()
  const { directory, clock } = operator
  const { store } = await openInlineStore({ directory })
  await queue(store, { at: NOW, to: [{ address: 'ann@far.example' }] })
  const reader = openQueueReader(directory)
  const events = new Events(() => NOW)
  const operations = new Operations({
    recorder: idleRecorder,
    store,
    reader,
    clock,
    events,
    policies: () => policies,
    retention: () => RETENTION,
    scheduler: storedScheduler(store, reader, idleRecorder),
  })
  server = new ControlServer({
    moves: NO_MOVES,
    readFiles: () => Promise.reject(new Error('no files')),
    queueDirectory: directory,
    operations,
    access: new AccessEntries({ store, reader, clock }),
    removeStsPolicy: (removal) => removePolicy(removal, { store, clock }),
    status: () => Promise.reject(new Error('no relay')),
    clock,
  })
  await server.start()
  close = async () => {
    await server.stop()
    await reader.close()
    await store.close()
  }
})

afterEach(async () => {
  await close()
  operator.leave()
})

const ask = (method: string, path: string, body?: unknown): Promise<readonly [number | undefined, string]> =>
  new Promise((resolve, reject) => {
    const asked = request(
      { socketPath: controlPath(operator.directory), method, path, headers: { 'content-type': 'application/json' }, agent: false },
      (response) => {
        text(response).then((answer) => resolve([response.statusCode, answer]), reject)
      },
    )
    asked.on('error', reject)
    asked.end(body === undefined ? undefined : JSON.stringify(body))
  })

const holdAll = (filter: object, more: Partial<BulkOperation> = {}) => ({
  operation: 'hold',
  selection: { kind: 'filter', filter: { ...ANY_MESSAGE, ...filter }, limit: null },
  queues: null,
  purge: false,
  dryRun: false,
  who: 'root',
  ...more,
})

test('only the owner may connect', () => {
  expect(statSync(controlPath(operator.directory)).mode & 0o777).toBe(0o600)
})

test('an operation is answered with its progress and its outcome', async () => {
  const [status, lines] = await ask('POST', '/operations', holdAll({}))
  expect(status).toBe(200)
  expect(
    lines
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
  ).toEqual([
    { kind: 'progress', soFar: { matched: 1, changed: 1, unknown: [], ids: [expect.any(String)] } },
    { kind: 'done', summary: { matched: 1, changed: 1, inTransfer: 0, unknown: [] } },
  ])
})

test('a filter that this daemon does not know is refused, and matches nothing', async () => {
  const [status, answer] = await ask('POST', '/operations', holdAll({ subject: 'x' }))
  expect([status, JSON.parse(answer)]).toEqual([
    422,
    {
      kind: 'failed',
      why: 'request refused: unknown member "subject" of selection.filter; if this daemon is older than the command, restart it',
      exitCode: 70,
    },
  ])
  const [, incomplete] = await ask('POST', '/operations', holdAll({ reply: undefined }))
  expect(JSON.parse(incomplete)).toMatchObject({
    kind: 'failed',
    why: expect.stringMatching(/^request refused: missing member "reply" of selection.filter;/),
  })
  const [, lines] = await ask('POST', '/operations', holdAll({ queue: 'hold' }, { dryRun: true }))
  expect(lines).toContain('{"kind":"done","summary":{"matched":0,')
})

test('a request of another version is refused with one sentence', async () => {
  expect(await ask('POST', '/orders', {})).toEqual([
    404,
    '{"kind":"failed","why":"no such path: /orders; known: /operations, /operations/undo, /operations/cancel, /destinations, /status, /read-files, /move, /suspend, /resume, /access, /access/remove, /tls/forget","exitCode":70}\n',
  ])
})

test('a suspended destination is remembered', async () => {
  expect(await ask('POST', '/suspend', { destination: 'far.example', by: 'root', duration: null, reason: null })).toEqual([200, '{}\n'])
  expect((await ask('POST', '/suspend', { destination: '', by: 'root', duration: null, reason: null }))[0]).toBe(422)
  expect((await ask('GET', '/suspend'))[0]).toBe(405)
})

test('malformed bytes are answered', async () => {
  const socket = connect(controlPath(operator.directory))
  const { text: answer, error } = await writeThenRead(socket, [`no request\r\n\r\n${'x'.repeat(3_000_000)}`])
  expect([responsesIn(answer), error]).toMatchObject([[{ status: 400, body: expect.stringMatching(/^\{"kind":"failed"/) }], undefined])
})

test.each([
  ['has sent nothing', ''],
  ['has sent half a header', 'GET /destinations HTTP/1.1\r\nHo'],
  ['was refused', 'no request\r\n\r\n'],
  ['has sent half a body', 'POST /suspend HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{'],
])('the server stops after 2 s while a client stays that %s', async (_, bytes) => {
  const socket = connect({ path: controlPath(operator.directory), allowHalfOpen: true })
  await once(socket, 'connect')
  socket.write(bytes)
  // Connections are accepted in order.
  expect((await ask('GET', '/destinations'))[0]).toBe(200)
  const stopped = server.stop()
  const { clock } = operator
  expect(clock.nextAt()).toBe(clock.now() + 2_000)
  clock.runNext()
  await stopped
  socket.destroy()
})

test.each([0, -1, 0.5, 1e300, 9e15, '1h'])('a suspension for %j ms is refused', async (duration) => {
  const [status, answer] = await ask('POST', '/suspend', { destination: 'far.example', by: 'root', duration, reason: null })
  expect([status, answer]).toEqual([422, expect.stringContaining('request refused: duration: expected')])
})
