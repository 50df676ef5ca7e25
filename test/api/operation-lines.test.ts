/** Operations that the API answers by lines of progress. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ApiWorld } from '../support/api-world.ts'

let world: ApiWorld
let ids: readonly string[]
beforeEach(async () => {
  world = await ApiWorld.open('memory')
  ids = await world.fill(3)
})
afterEach(() => world.close())

const LINES = { accept: 'application/x-ndjson' }
const all = { kind: 'filter', filter: {}, all: true }

async function linesOf(path: string, body?: object, as = 'operator') {
  const { status, text } = await world.api.ask('POST', path, { as, headers: LINES, ...(body === undefined ? {} : { body }) })
  return [
    status,
    ...text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
  ]
}

test('an operation, its dry run and its undo', async () => {
  const counts = { matched: 3, changed: 3 }
  expect(await linesOf('/operations', { operation: 'hold', selection: all, dry_run: true })).toEqual([
    200,
    { progress: { ...counts, changed: 0, ids } },
    { done: { ...counts, changed: 0, in_transfer: 0, unknown: [] } },
  ])
  expect(await linesOf('/operations', { operation: 'hold', selection: all, reason: 'a test' })).toEqual([
    200,
    { progress: { ...counts, ids } },
    { done: { ...counts, in_transfer: 0, unknown: [] } },
  ])
  const { json } = await world.api.get('/audit')
  expect(json.records[0]).toMatchObject({ action: 'hold', reason: 'a test', who: 'token:operator (127.0.0.1)' })
  const [status, ...lines] = await linesOf('/operations/1/undo?reason=undone')
  expect([status, lines.at(-1)]).toEqual([200, { done: { ...counts, in_transfer: 0, unknown: [], id: 2 } }])
  await linesOf('/operations', { operation: 'flush', selection: all })
  expect((await linesOf('/operations/3/undo')).at(-1)).toEqual({
    failed: { detail: 'operation 3 (flush) cannot be undone', exit_code: 65 },
  })
})

test('a flush has the numbers of the messages that it leaves unchanged, by the reason', async () => {
  await linesOf('/operations', { operation: 'hold', selection: { kind: 'ids', ids: [ids[0]] } })
  const flush = { operation: 'flush', selection: all }
  const [, ...rehearsed] = await linesOf('/operations', { ...flush, dry_run: true })
  const [, ...lines] = await linesOf('/operations', flush)
  for (const done of [rehearsed.at(-1), lines.at(-1)]) expect(done).toMatchObject({ done: { matched: 2, hold: 1 } })
  const { json } = await world.api.post('/operations', { ...flush, dry_run: true }, { as: 'operator' })
  expect(json).toMatchObject({ operation: 'flush', plan: { matched: 2, hold: 1 } })
})

test('ids that are unknown are listed; a client with limited destinations changes what it may see', async () => {
  const named = { kind: 'ids', ids: [ids[0], '4SVLCh0sf8z7Qhl'] }
  const [, ...lines] = await linesOf('/operations', { operation: 'hold', selection: named })
  expect(lines.at(-1)).toMatchObject({ done: { changed: 1, unknown: ['4SVLCh0sf8z7Qhl'] } })
  await world.fill(2, 'elsewhere.test')
  expect((await linesOf('/operations', { operation: 'delete', selection: all }, 'limited')).at(-1)).toMatchObject({ done: { changed: 3 } })
})

test('is refused before it begins without the role, without a selection, and with a key', async () => {
  expect((await linesOf('/operations', { operation: 'hold', selection: all }, 'viewer'))[0]).toBe(403)
  expect((await linesOf('/operations', { operation: 'hold', selection: { kind: 'filter', filter: {} } }))[0]).toBe(422)
  const headers = { ...LINES, 'idempotency-key': 'one' }
  const { status } = await world.api.ask('POST', '/operations', { as: 'operator', headers, body: { operation: 'hold', selection: all } })
  expect(status).toBe(400)
  expect(await world.api.get('/messages/count?queue=hold')).toMatchObject({ json: { count: 0 } })
})
