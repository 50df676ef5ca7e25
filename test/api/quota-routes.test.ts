import { afterEach, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { HOUR } from '../../src/system/clock.ts'
import { ApiWorld } from '../support/api-world.ts'

let world: ApiWorld | undefined
afterEach(async () => {
  await world?.close()
  world = undefined
})

const SETTINGS = { quota: { app: { keys: 'token', limits: ['2/1h', '50 recipients/1d'] } } }
const opened = async (): Promise<ApiWorld> => (world = await ApiWorld.open('sqlite', configFrom(SETTINGS, 'deferd.example'), SETTINGS))

const asOperator = { as: 'operator' } as const
const MAIL = { from: 'App <app@us.example>', to: 'Ann <ann@a.example.org>', text: 'hi' }

test('the key of a sender may be written in any case', async () => {
  const settings = { quota: { app: { keys: 'sender', limits: ['2/1h'] } } }
  world = await ApiWorld.open('memory', configFrom(settings, 'deferd.example'), settings)
  const { api } = world
  await api.post('/messages', MAIL, { as: 'sender' })
  const uses = [expect.objectContaining({ quota: 'app', key: 'app@us.example', used: 1 })]
  expect((await api.get('/quotas/App@US.example')).json).toEqual({ uses })
  expect(await api.post('/quotas/reset', { key: 'App@US.example' }, asOperator)).toMatchObject({ status: 200 })
  expect((await api.get('/quotas/app@us.example')).json).toEqual({ uses: [] })
})

test('mail above a quota gets 429 with the time until there is room; the use is listed, shown and reset', async () => {
  const { api } = await opened()
  const send = () => api.post('/messages', MAIL, { as: 'sender' })
  expect([(await send()).status, (await send()).status]).toEqual([202, 202])
  const refused = await send()
  expect(refused).toMatchObject({ status: 429, json: { type: '/problems/quota-exceeded' } })
  expect(refused.json.detail).toMatch(/^450 4\.7\.1 Error: too much mail from token:\w+$/)
  const [, key = ''] = /from (.*)$/.exec(refused.json.detail) ?? []
  const wait = Number(refused.headers.get('retry-after'))
  expect(wait).toBeGreaterThan(HOUR / 1_000)
  expect(wait).toBeLessThanOrEqual((HOUR * 13) / 12 / 1_000)
  const hour = { quota: 'app', key, keys: 'token', action: 'refuse', limit: '2/1h', measure: 'messages', span: 3_600, used: 2, maximum: 2 }
  const day = { limit: '50 recipients/1d', measure: 'recipients', used: 2, maximum: 50, room_time: null }
  const uses = [expect.objectContaining(hour), expect.objectContaining(day)]
  expect((await api.get('/quotas')).json).toEqual({ uses })
  expect((await api.get(`/quotas/${encodeURIComponent(key)}`)).json).toEqual({ uses })
  expect((await api.get('/quotas?quota=other')).json).toEqual({ uses: [] })
  expect((await api.get('/quotas/nobody')).json).toEqual({ uses: [] })
  expect(await api.post('/quotas/reset', { key }, { as: 'viewer' })).toMatchObject({ status: 403 })
  expect(await api.post('/quotas/reset', { key, quota: 'other' }, asOperator)).toMatchObject({ status: 404 })
  expect(await api.post('/quotas/reset', { key }, asOperator)).toMatchObject({ status: 200, json: { key } })
  expect((await send()).status).toBe(202)
  expect((await api.get('/audit')).json).toMatchObject({ records: [{ action: 'quota-reset', arguments: key, changed: 1 }] })
})
