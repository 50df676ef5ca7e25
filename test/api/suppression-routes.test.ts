import { afterEach, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { ApiWorld } from '../support/api-world.ts'

let world: ApiWorld | undefined
afterEach(async () => {
  await world?.close()
  world = undefined
})

const SETTINGS = { suppression: 'yes' } as const
const opened = async (): Promise<ApiWorld> => (world = await ApiWorld.open('sqlite', configFrom(SETTINGS, 'deferd.example'), SETTINGS))

const BOB = { scope: 'us.example', address: 'bob@a.example.org' }
const asOperator = { as: 'operator' } as const

test('entries are added, listed, shown and removed', async () => {
  const { api } = await opened()
  expect(await api.post('/suppressions', { ...BOB, reason: 'complaint', text: 'stop' }, asOperator)).toMatchObject({
    status: 200,
    json: BOB,
  })
  expect(await api.post('/suppressions', { address: '@gone.example', expires_in: 60 }, asOperator)).toMatchObject({ status: 200 })
  const first = (await api.get('/suppressions?limit=1')).json
  expect(first).toMatchObject({ entries: [{ scope: '*', address: '@gone.example', reason: 'manual', state: 'listed' }] })
  const second = (await api.get(`/suppressions?limit=1&after=${first.next}`)).json
  expect(second).toMatchObject({ entries: [{ ...BOB, text: 'stop', expire_time: null }], next: null })
  expect(await api.get('/suppressions?after=nonsense')).toMatchObject({ status: 400 })
  expect((await api.get('/suppressions/bob@A.example.org')).json).toMatchObject({ entries: [BOB] })
  expect(await api.get('/suppressions/bob')).toMatchObject({ status: 422 })
  const removal = { filter: { reason: 'complaint', since: '1h' } }
  expect((await api.post('/suppressions/remove', { ...removal, dry_run: true }, asOperator)).json).toMatchObject({
    removed: 1,
    entries: [BOB],
  })
  expect((await api.post('/suppressions/remove', removal, asOperator)).json).toMatchObject({ removed: 1 })
  expect((await api.post('/suppressions/remove', { entries: [BOB] }, asOperator)).json).toMatchObject({ removed: 0 })
  for (const wrong of [{ filter: {} }, { filter: { scope: 'us.example' }, all: true }, { entries: [] }, {}])
    expect(await api.post('/suppressions/remove', wrong, asOperator)).toMatchObject({ status: 422 })
  expect(await api.post('/suppressions/resume', { scope: 'us.example' }, asOperator)).toMatchObject({ status: 404 })
  expect((await api.get('/suppression-stops')).json).toEqual({ stops: [] })
})

test('an import has all lines or none', async () => {
  const { api } = await opened()
  const send = (text: string, more = {}) => api.post('/suppressions/import', { text, ...more }, asOperator)
  expect(await send('ann@a.example.org\nnobody\n')).toMatchObject({
    status: 422,
    json: {
      type: '/problems/invalid-lines',
      errors: [{ pointer: '/text', detail: 'line 2: "nobody" is neither an address nor @domain' }],
    },
  })
  expect((await send('ann@a.example.org\n', { dry_run: true })).json).toEqual({ imported: 1 })
  expect((await api.get('/suppressions')).json).toMatchObject({ entries: [] })
  expect((await send('ann@a.example.org\nbob@a.example.org\n', { scope: 'us.example' })).json).toEqual({ imported: 2 })
  expect((await api.get('/suppressions?scope=us.example&reason=import')).json).toMatchObject({
    entries: [{ scope: 'us.example' }, { scope: 'us.example' }],
  })
})

test('a submission to a listed address is refused with a reason, or without the address', async () => {
  const { api } = await opened()
  await api.post('/suppressions', BOB, asOperator)
  const mail = { from: 'app@us.example', to: ['ann@a.example.org', 'bob@a.example.org'], subject: 'hi', text: 'hi' }
  const refused = await api.post('/messages', mail, { as: 'sender' })
  expect(refused).toMatchObject({
    status: 422,
    json: { type: '/problems/invalid-recipients', errors: [{ pointer: '/to/1', reason: 'suppressed' }] },
  })
  expect(JSON.stringify(refused.json)).toContain('on the suppression list since 2026-01-01 (manual)')
  expect(await api.post('/messages', { ...mail, partial: true }, { as: 'sender' })).toMatchObject({
    status: 202,
    json: { recipients: [{ address: 'ann@a.example.org' }], rejected: [{ address: 'bob@a.example.org', reason: 'suppressed' }] },
  })
  expect(await api.post('/messages', { ...mail, from: 'app@other.example' }, { as: 'sender' })).toMatchObject({ status: 202 })
})
