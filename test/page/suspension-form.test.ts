/** The form that suspends deliveries: what it does with a mistake. */
import { afterEach, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { ApiWorld } from '../support/api-world.ts'
import { PageScreens } from '../support/page-screens.ts'

let world: ApiWorld
afterEach(() => world.close())

const words = (markup: string): string =>
  markup
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll('&quot;', '"')
    .replaceAll(/\s+/g, ' ')

test('a suspension whose end is no time changes nothing, and keeps what was filled in', async () => {
  const tables = { provider: { google: { mx: ['.google.example'] } } }
  world = await ApiWorld.open('memory', configFrom(tables, 'relay.example'), tables)
  const screens = new PageScreens(world)
  await world.fill(2)
  const audited = async (): Promise<readonly string[]> => {
    const { records } = (await world.api.get('/audit', { as: 'admin' })).json as unknown as { records: readonly { arguments: string }[] }
    return records.map((one) => one.arguments)
  }
  for (const [place, question, about] of [
    ['destinations/a.example.org', 'Suspend a.example.org?', '2 recipients will wait'],
    ['providers/google', 'Suspend google?', '0 recipients will wait'],
  ] as const) {
    for (const time of ['soon', '0s', '99999999d']) {
      const form = await screens.sent(`${place}/suspend`, { reason: 'rate "limited"', for: time })
      expect([time, form.status]).toEqual([time, 422])
      const shown = words(form.text)
      for (const text of [question, about, 'Ends by itself after: expected', `got "${time}"`]) expect(shown).toContain(text)
      expect(form.text).toMatch(/name="reason"[^>]*value="rate &quot;limited&quot;"/s)
      expect(form.text).toContain(`value="${time}"`)
    }
    expect(await audited()).toHaveLength(place.startsWith('d') ? 0 : 1)
    const last = place.split('/').at(-1)
    expect(await screens.location('POST', `${place}/suspend`, { reason: 'rate limited', for: '2h' })).toBe(`../${last}`)
    expect((await audited())[0]).toBe(`${place.startsWith('p') ? 'provider ' : ''}${last} --for=2h --reason='rate limited'`)
  }
})

test('a destination that is suspended itself and with its provider waits for the end of both', async () => {
  const tables = { provider: { google: { mx: ['.google.example'] } } }
  const providerOf = () => 'google'
  world = await ApiWorld.open('memory', configFrom(tables, 'relay.example'), tables, { providerOf })
  const screens = new PageScreens(world)
  await world.fill(2)
  await world.queue.advance(1_000)
  const place = 'destinations/a.example.org'
  await screens.location('POST', 'providers/google/suspend', { reason: '', for: '' })
  await screens.location('POST', `${place}/suspend`, { reason: 'moving', for: '2m' })
  const shown = words(await screens.text(place))
  expect(shown).toContain(', ends in 2m : moving; also with provider google by')
  expect(shown).toContain('2 recipients wait until the destination and the provider google are both resumed.')
  expect(words(await screens.text('destinations'))).toContain('when resumed')
  expect(words(await screens.text(`${place}/resume`))).toContain(
    'No delivery starts: the provider google stays suspended, and the destination with it. 2 recipients wait for it.',
  )
  await screens.location('POST', 'providers/google/resume')
  expect(words(await screens.text(`${place}/resume`))).toContain('Deliveries start again. 2 recipients wait for it')
})
