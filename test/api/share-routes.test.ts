/** Shares of the queue over the API: what waits, and what they had of the deliveries. */
import { afterEach, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import type { SharesJson } from '../../src/resources/share-json.ts'
import { ApiWorld } from '../support/api-world.ts'

let world: ApiWorld | undefined
afterEach(async () => {
  await world?.close()
  world = undefined
})

const FAIR = { fair_share: 'yes', share_key: 'sender_domain', share_weight_maps: { 'shop.example': '3' } }

async function opened(settings: Readonly<Record<string, unknown>>): Promise<ApiWorld> {
  return (world = await ApiWorld.open('sqlite', configFrom(settings, 'deferd.example'), settings))
}

const send = (to: ApiWorld, from: string, recipient: string) =>
  to.api.post('/messages', { from, to: recipient, text: 'hi' }, { as: 'sender' })

test('shares with what waits, their weights, and the parts that these give them', async () => {
  const relay = await opened(FAIR)
  await relay.api.post('/destinations/a.example.org/suspend', {}, { as: 'operator' })
  for (let n = 0; n < 3; n++) await send(relay, 'mail@news.example', `u${n}@a.example.org`)
  await send(relay, 'mail@shop.example', 'ann@a.example.org')
  const { json } = await relay.api.get('/shares')
  const { fair_share: isFair, total, shares } = json as unknown as SharesJson
  expect([isFair, total]).toEqual([true, 2])
  expect(shares).toEqual([
    { class: null, key: 'news.example', weight: 1, waiting: 3, in_flight: 0, started: 0, wanted: 0.25, got: null },
    { class: null, key: 'shop.example', weight: 3, waiting: 1, in_flight: 0, started: 0, wanted: 0.75, got: null },
  ])
  expect((await relay.api.get('/shares?limit=1')).json).toMatchObject({ total: 2, shares: [{ key: 'news.example' }] })
  expect((await relay.api.get('/shares?class=fast')).json).toEqual({ fair_share: true, total: 0, shares: [] })
})

test('what began in the last minute is that of each class', async () => {
  const relay = await opened({
    ...FAIR,
    class: { normal: { weight: 1 }, fast: { weight: 9 } },
    sender_class_maps: { '@app.example': 'fast' },
  })
  for (const [from, count] of [
    ['mail@news.example', 3],
    ['mail@shop.example', 1],
    ['mail@app.example', 2],
  ] as const)
    for (let n = 0; n < count; n++) await send(relay, from, `u${n}@ok.example`)
  await relay.queue.advance(5_000)
  const { shares } = (await relay.api.get('/shares')).json as unknown as SharesJson
  expect(shares.map((one) => [one.class, one.key, one.waiting, one.started, one.wanted, one.got])).toEqual([
    ['fast', 'app.example', 0, 2, null, 1],
    ['normal', 'news.example', 0, 3, null, 0.75],
    ['normal', 'shop.example', 0, 1, null, 0.25],
  ])
  await relay.queue.advance(70_000)
  expect((await relay.api.get('/shares')).json).toMatchObject({ total: 0, shares: [] })
})

test('without fair_share there are none', async () => {
  const relay = await opened({})
  await send(relay, 'mail@news.example', 'ann@a.example.org')
  expect((await relay.api.get('/shares')).json).toEqual({ fair_share: false, total: 0, shares: [] })
})
