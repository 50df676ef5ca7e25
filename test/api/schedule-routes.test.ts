/** Schedules over the API: list, one with its runs, and a run by order. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { ApiWorld } from '../support/api-world.ts'

const schedule = {
  nightly: { at: '30 2 * * *', zone: 'Europe/Berlin', do: 'flush', destinations: '*.example' },
  broken: { at: '0 0 1 1 *', do: 'report', notify: 'ops@us.example' },
}

let world: ApiWorld
beforeEach(async () => {
  world = await ApiWorld.open('memory', configFrom({ schedule }, 'relay.example'))
})
afterEach(() => world.close())

test('schedules are listed with their next runs, and on /now', async () => {
  const nightly = {
    schedule: 'nightly',
    do: 'flush',
    at: '30 2 * * *',
    zone: 'Europe/Berlin',
    next_time: Date.parse('2026-01-01T01:30:00Z') / 1_000,
    last_run: null,
  }
  const { json } = await world.api.get('/schedules')
  expect(json).toMatchObject({ schedules: [{ schedule: 'broken', next_time: Date.parse('2027-01-01T00:00:00Z') / 1_000 }, nightly] })
  expect((await world.api.get('/now')).json).toMatchObject({ schedules: [{ schedule: 'broken' }, nightly] })
  expect((await world.api.get('/schedules/nightly')).json).toMatchObject({ ...nightly, members: { destinations: ['*.example'] }, runs: [] })
  expect((await world.api.get('/schedules/other')).status).toBe(404)
  expect((await world.api.get('/schedules', { as: 'limited' })).status).toBe(403)
})

test('a run by order answers with its end, and is audited under the name of the client', async () => {
  const done = await world.api.post('/schedules/nightly/run', {}, { as: 'operator' })
  expect(done).toMatchObject({ status: 200, json: { schedule: 'nightly', result: 'done', text: 'flush', changed: 1 } })
  expect((await world.api.post('/schedules/broken/run', {}, { as: 'operator' })).json).toMatchObject({ result: 'failed' })
  expect((await world.api.post('/schedules/nightly/run', {}, { as: 'viewer' })).status).toBe(403)
  expect((await world.api.post('/schedules/other/run', {}, { as: 'operator' })).status).toBe(404)
  const { json } = await world.api.get('/schedules/nightly')
  expect(json).toMatchObject({ last_run: { ordered_by: 'token:operator (127.0.0.1)', result: 'done' }, runs: [{ result: 'done' }] })
  const { records } = (await world.api.get('/audit')).json as { records: readonly object[] }
  expect(records).toMatchObject([
    { who: 'token:operator (127.0.0.1)', action: 'schedule', arguments: 'broken', state: 'failed', error: expect.stringMatching(/./) },
    { who: 'token:operator (127.0.0.1)', action: 'schedule', arguments: 'nightly', state: 'done', error: null },
  ])
})
