/** The order of the list of messages, and what of the first screen is never cut. */
import { afterEach, expect, test } from 'vitest'
import { ApiWorld } from '../support/api-world.ts'
import { PageScreens } from '../support/page-screens.ts'

let opened: ApiWorld | undefined
afterEach(async () => {
  await opened?.close()
  opened = undefined
})

for (const engine of ['memory', 'sqlite'] as const)
  test(`the ids that a node makes have the order of arrival, also within a millisecond (${engine})`, async () => {
    opened = await ApiWorld.open(engine)
    const { queue, api } = opened
    const arrived: string[] = []
    for (let n = 0; n < 24; n++) {
      arrived.push(await queue.accept([`ann${n}@a.example.org`]))
      if (n % 3 === 0) await queue.advance(n * 700)
    }
    const { messages } = (await api.get('/messages')).json
    expect(messages.map(({ queue_id: id }) => id)).toEqual(arrived)
    const listed = [...(await new PageScreens(opened).text('messages?order=newest')).matchAll(/class="code" href="[^"]*">(\w+)</g)]
    expect(listed.map(([, id]) => id)).toEqual(arrived.toReversed())
  })

test('the number of waiting recipients stands beside a sentence that may be cut', async () => {
  opened = await ApiWorld.open('memory')
  const { queue } = opened
  await queue.accept(['ann@a.example.org', 'bob@a.example.org'])
  await queue.advance(60_000)
  await opened.api.post(
    '/destinations/a.example.org/suspend',
    { reason: 'a — b, which is a long reason that a phone cuts' },
    { as: 'operator' },
  )
  const markup = await new PageScreens(opened).text('')
  expect(markup).toMatch(/suspended by [^<]*: a — b, which is a long reason that a phone cuts<\/span>/)
  expect(markup).toContain('<span class="figure">2 recipients wait</span>')
})
