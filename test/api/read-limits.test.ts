/** Reads of requests that walk much of the queue or of the history end at their limits, and when the client leaves. */
import { afterEach, expect, test, vi } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { seconds } from '../../src/system/clock.ts'
import { ApiWorld } from '../support/api-world.ts'

let world: ApiWorld | undefined
afterEach(async () => {
  await world?.close()
  world = undefined
})

/** Makes the monotonic clock of a world jump by `time` at each read. */
function slowReads<Method extends 'departed' | 'details'>({ queue: { clock, reader } }: ApiWorld, method: Method, time: number) {
  const reads = vi.spyOn(reader, method)
  const now = clock.monotonic.bind(clock)
  vi.spyOn(clock, 'monotonic').mockImplementation(() => now() + reads.mock.calls.length * time)
  return reads
}

const RESEND = { filter: { sender: '*' }, dry_run: true }

test.each([RESEND, { ...RESEND, dry_run: false }])('a selection of mail to send again ends at its limit of time: %j', async (body) => {
  world = await ApiWorld.open('memory')
  await world.fill(200, 'ok.example')
  const reads = slowReads(world, 'departed', seconds(20))
  const { status, json, headers } = await world.api.post('/history/resend', body, { as: 'operator' })
  expect([status, json.detail, headers.get('retry-after')]).toEqual([503, expect.stringContaining('select less'), '5'])
  expect(reads.mock.calls.length).toBe(2)
})

test('a selection of mail to send again ends when its client leaves', async () => {
  world = await ApiWorld.open('memory')
  await world.fill(200, 'ok.example')
  const { reader } = world.queue
  const departed = reader.departed.bind(reader)
  const [begun, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const reads = vi.spyOn(reader, 'departed').mockImplementation(async (...page) => {
    begun.resolve()
    await left.promise
    return departed(...page)
  })
  const plan = vi.spyOn(world.operations.resending, 'plan')
  const client = new AbortController()
  const asked = fetch(`${world.api.base}/history/resend`, {
    method: 'POST',
    headers: { authorization: 'Bearer operator', 'content-type': 'application/json' },
    body: JSON.stringify(RESEND),
    signal: client.signal,
  })
  await begun.promise
  client.abort()
  await expect(asked).rejects.toThrow(/abort/)
  await expect.poll(() => plan.mock.calls[0]?.[1]?.aborted).toBe(true)
  left.resolve()
  await expect(plan.mock.results[0]?.value).rejects.toThrow(/abort/)
  expect(reads.mock.calls.length).toBe(1)
})

test('a search for a part of an address looks at the time between few reads, and its pages have each message', async () => {
  world = await ApiWorld.open('memory')
  const ids = [...(await world.fill(30)), ...(await world.fill(30, 'ok.example'))]
  const reads = slowReads(world, 'details', seconds(0.1))
  const found: string[] = []
  for (let after = ''; ;) {
    const before = reads.mock.calls.length
    const { json } = await world.api.get(`/search?q=${encodeURIComponent('*user*')}&limit=500${after}`)
    found.push(...json.messages.map((one) => one.queue_id))
    expect(reads.mock.calls.length - before).toBeLessThanOrEqual(20)
    if (json.next === null) break
    after = `&after=${json.next}`
  }
  expect(found.toSorted()).toEqual(ids.toSorted())
})

test('of many looks at the providers, few read their members at once', async () => {
  world = await ApiWorld.open('memory', configFrom({ provider: { google: { mx: ['.google.example'] } } }, 'relay.example'))
  const { providerMembers } = world.queue.reader.records
  const all = providerMembers.all.bind(providerMembers)
  const go = Promise.withResolvers<void>()
  let [open, most, reads] = [0, 0, 0]
  vi.spyOn(providerMembers, 'all').mockImplementation(async () => {
    most = Math.max(most, ++open)
    if (++reads === 4) go.resolve()
    await go.promise
    return all().finally(() => open--)
  })
  const { api } = world
  const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => api.get(n % 2 === 0 ? '/providers' : '/providers/google')))
  expect(most).toBe(4)
  // On a busy machine, some have no slot within its patience.
  expect([200, 503]).toEqual(expect.arrayContaining([...new Set(answers.map(({ status }) => status))]))
})
