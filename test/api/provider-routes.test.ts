import { afterEach, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { MINUTE } from '../../src/system/clock.ts'
import { ApiWorld } from '../support/api-world.ts'

let world: ApiWorld | undefined
afterEach(async () => {
  await world?.close()
  world = undefined
})

const tables = { provider: { google: { mx: ['.google.example'], provider_concurrency_limit: 5 } } }
const providerOf = (destination: string) => (destination.startsWith('g') ? 'google' : null)

async function opened(store: 'memory' | 'sqlite'): Promise<ApiWorld> {
  world = await ApiWorld.open(store, configFrom(tables, 'relay.example'), tables, { providerOf })
  for (const name of ['g1.example', 'g1.example', 'g2.example', 'other.example']) await world.queue.accept([`ann@${name}`])
  await world.queue.advance(MINUTE)
  return world
}

test.each(['memory', 'sqlite'] as const)(
  'a provider is shown with the mail of its destinations, suspended and resumed (%s)',
  async (store) => {
    const { api, queue } = await opened(store)
    const provider = { provider: 'google', state: 'open', waiting: 3, limit: 5, in_flight: 0, destinations: 2 }
    expect((await api.get('/providers')).json).toMatchObject({
      providers: [{ ...provider, largest_destinations: ['g1.example', 'g2.example'] }],
    })
    expect((await api.get('/providers/GOOGLE')).json).toMatchObject({
      ...provider,
      mx: ['.google.example'],
      waiting_destinations: [
        { destination: 'g1.example', waiting: 2 },
        { destination: 'g2.example', waiting: 1 },
      ],
    })
    const suspended = await api.post('/providers/google/suspend', { reason: 'rate limited', for: '10m' }, { as: 'operator' })
    expect(suspended.json).toMatchObject({
      state: 'suspended',
      suspend_reason: 'rate limited',
      suspended_until: expect.any(Number) as number,
    })
    const attempts = queue.attempts().length
    await queue.accept(['bob@g3.example'])
    await queue.advance(8 * MINUTE)
    // The mail exchangers of a new domain are looked up; it gets no connection.
    expect(
      queue
        .attempts()
        .slice(attempts)
        .map(({ destination }) => destination),
    ).not.toContain('g3.example')
    expect((await api.get('/destinations/g3.example')).json).toMatchObject({
      state: 'suspended',
      suspended_with: 'google',
      suspend_reason: 'rate limited',
    })
    expect((await api.post('/destinations/g3.example/resume', undefined, { as: 'operator' })).json).toMatchObject({
      state: 'suspended',
      suspended_with: 'google',
    })
    expect((await api.post('/providers/google/resume', undefined, { as: 'operator' })).json).toMatchObject({
      state: 'open',
      suspended_by: null,
    })
    await queue.advance(MINUTE)
    expect(queue.attempts().map(({ destination }) => destination)).toContain('g3.example')
    const audited = (await queue.reader.records.audit.after({ after: 0, limit: 10 })).map(
      ({ action, arguments: words }) => `${action} ${words}`,
    )
    expect(audited).toEqual(["suspend provider google --for=10m --reason='rate limited'", 'resume g3.example', 'resume provider google'])
  },
)

test('unknown providers, past ends and viewers are refused', async () => {
  const { api } = await opened('memory')
  expect((await api.get('/providers/gogle')).json).toMatchObject({
    type: '/problems/unknown-provider',
    detail: expect.stringContaining('google') as string,
  })
  expect((await api.post('/providers/gogle/suspend', {}, { as: 'operator' })).status).toBe(404)
  expect((await api.post('/providers/google/suspend', { until: 1 }, { as: 'operator' })).status).toBe(422)
  expect((await api.post('/providers/google/suspend', {}, { as: 'viewer' })).status).toBe(403)
})
