import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { logPage } from '../../src/queries/log-page.ts'
import type { NodeLines, QueueView } from '../../src/queries/queue-view.ts'
import type { LogRecordJson } from '../../src/resources/log-json.ts'
import type { QueueEvent } from '../../src/telemetry/events.ts'
import { RecentLog } from '../../src/telemetry/recent-log.ts'
import { ApiWorld } from '../support/api-world.ts'

let world: ApiWorld
let id = ''

const warning = (text: string): QueueEvent => ({ kind: 'note', level: 'warning', text })

beforeAll(async () => {
  world = await ApiWorld.open('memory')
  ;[id = ''] = await world.fill(1)
  const { log } = world.queue.relay.status
  const now = world.queue.clock.wall.now()
  for (let i = 0; i < 5; i++) log.listen(warning(`line ${i}`), now - 60_000 + i)
  log.listen({ kind: 'note', level: 'error', text: `${id}: not signed` }, now - 50_000)
})
afterAll(() => world.close())

interface LogAnswer {
  readonly records: readonly LogRecordJson[]
  readonly counts: object
  readonly nodes: readonly { readonly name: string | null; readonly since: number | null }[]
  readonly next: string | null
}

const log = async (query = ''): Promise<LogAnswer> => (await world.api.get(`/log${query}`)).json as unknown as LogAnswer

test('GET /log has the last line first, in pages', async () => {
  const { records, counts, nodes, next } = await log('?limit=2')
  expect(records).toMatchObject([
    { level: 'error', event: 'note', program: 'master', node: null, queue_ids: [id], destination: null, text: `${id}: not signed` },
    { level: 'warn', text: 'line 4' },
  ])
  expect(counts).toEqual({ warn: 5, error: 1, fatal: 0 })
  expect(nodes).toEqual([{ name: null, since: expect.any(Number) as number }])
  const second = await log(`?limit=4&before=${next}`)
  expect([second.records.map(({ text }) => text), second.next]).toEqual([['line 3', 'line 2', 'line 1', 'line 0'], null])
})

test('conditions select lines', async () => {
  const texts = async (query: string) => (await log(query)).records.map(({ text }) => text)
  expect(await texts('?level=error')).toEqual([`${id}: not signed`])
  expect(await texts(`?queue_id=${id}`)).toEqual([`${id}: not signed`])
  expect(await texts('?text=*3')).toEqual(['line 3'])
  expect(await texts('?event=died')).toEqual([])
  const [{ time } = { time: 0 }] = (await log('?text=line%201')).records
  expect(await texts(`?logged_after=${time}&logged_before=${time + 0.001}`)).toEqual(['line 1'])
})

test.each(['level=info', 'event=removed', 'limit=0', 'logged_after=2&logged_before=1', 'colour=red'])('%s is refused', async (query) => {
  expect((await world.api.get(`/log?${query}`)).status).toBe(422)
})

test('a cursor belongs to its conditions, and the log to clients who see all destinations', async () => {
  const { next } = await log('?limit=2')
  expect((await world.api.get(`/log?limit=2&level=error&before=${next}`)).status).toBe(400)
  expect((await world.api.get('/log', { as: 'limited' })).status).toBe(403)
  expect((await world.api.get('/log', { as: 'sender' })).status).toBe(403)
})

/** The view of a node that shares the queue with others; null for one that does not answer. */
function sharedView(logs: readonly (RecentLog | null)[]): QueueView {
  const { view } = world.api.api
  const live = {
    log: async (...asked: Parameters<RecentLog['find']>): Promise<readonly NodeLines[]> =>
      logs.map((one, i) => ({ node: one === null ? 0 : i + 1, name: `n${i + 1}`, found: one?.find(...asked) ?? null })),
  }
  return Object.create(view, { live: { value: live } }) as QueueView
}

test('pages of several nodes have each line once, the last one first', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 12 }), { maxLength: 3 }),
      fc.integer({ min: 1, max: 5 }),
      async (nodes, limit) => {
        const logs = nodes.map((times) => {
          const own = new RecentLog(0)
          for (const at of times) own.listen(warning('x'), at)
          return own
        })
        const view = sharedView(logs)
        const seen: LogRecordJson[] = []
        for (let before: string | undefined, isDone = false; !isDone;) {
          const page = await logPage(view, { limit, before })
          expect(page.records.length).toBeLessThanOrEqual(limit)
          seen.push(...page.records)
          before = page.next ?? undefined
          isDone = page.next === null
        }
        expect(new Set(seen.map(({ id: one }) => one)).size).toBe(nodes.flat().length)
        expect(seen.map(({ time }) => time)).toEqual(
          nodes
            .flat()
            .toSorted((a, b) => b - a)
            .map((at) => at / 1_000),
        )
      },
    ),
    { numRuns: 40 },
  ))

test('a node that does not answer is named, and a node can be chosen', async () => {
  const own = new RecentLog(5_000)
  own.listen(warning('x'), 6_000)
  const view = sharedView([own, null])
  expect(await logPage(view, { limit: 5 })).toMatchObject({
    records: [{ node: 'n1' }],
    nodes: [
      { name: 'n1', since: 5 },
      { name: 'n2', since: null },
    ],
  })
  expect(await logPage(view, { limit: 5, node: 'n2' })).toMatchObject({ records: [], counts: { warn: 0 }, nodes: [{ name: 'n2' }] })
})
