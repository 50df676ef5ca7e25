/** The links and forms of the page: each has only parameters that its screen declares, and none is refused. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { HTTP_PROBLEMS, Problem } from '../../src/http/problem-details.ts'
import { matchRoute, type Answer } from '../../src/http/route-table.ts'
import { MINUTE } from '../../src/system/clock.ts'
import { ApiWorld } from '../support/api-world.ts'
import { PageScreens } from '../support/page-screens.ts'

const ORIGIN = 'http://page.example/'
const SECRET = `whsec_${Buffer.alloc(32, 'example').toString('base64')}`
const TABLES = {
  class: { fast: { weight: 100 }, normal: { weight: 10 } },
  provider: { google: { mx: ['.google.example'] } },
  quota: { app: { keys: 'sender', limits: '100/1d' } },
}

let world: ApiWorld
let screens: PageScreens
beforeEach(async () => {
  world = await ApiWorld.open('memory', configFrom(TABLES, 'relay.example'), TABLES, { providerOf: () => 'google' })
  screens = new PageScreens(world)
})
afterEach(() => world.close())

const unescaped = (text: string): string => text.replaceAll('&amp;', '&')

/** Places below the root to which the links and the forms of a screen lead, each form with all of its fields. */
function placesIn(markup: string, here: string): readonly string[] {
  const at = (place: string): URL => new URL(unescaped(place), ORIGIN + here)
  const links = [...markup.matchAll(/<a [^>]*?href="([^"#]+)"/g)].map(([, href = '']) => at(href))
  const forms = [...markup.matchAll(/<form [^>]*?action="([^"]*)"[^>]* method="get"[^>]*>(.*?)<\/form>/gs)].map(
    ([, action = '', fields = '']) => {
      const url = at(action)
      for (const [field, name = ''] of fields.matchAll(/<(?:input|select|button)\s[^>]*?name="([^"]*)"[^>]*>/g))
        url.searchParams.set(name, unescaped(/value="([^"]*)"/.exec(field)?.[1] ?? ''))
      return url
    },
  )
  return [...links, ...forms]
    .filter(({ origin, pathname }) => ORIGIN.startsWith(origin) && !pathname.startsWith('/api/'))
    .map(({ href }) => href.slice(ORIGIN.length))
}

/** A word that a link gives as a value, such as that of an order; other values are those of the mail. */
const WORD = /^[a-z-]{1,10}$/

/** The route of a place with each of its parameters. Lists have a link of the same kinds for each row. */
function kindsOf(place: string): readonly string[] {
  const url = new URL(place, ORIGIN)
  const match = matchRoute(screens.page.routes, 'GET', url.pathname)
  const path = match.kind === 'found' ? match.route.path : url.pathname
  const valueOf = (value: string): string => (value === '' || WORD.test(value) ? value : '…')
  return [path, ...[...url.searchParams].map(([name, value]) => `${path}?${name}=${valueOf(value)}`)]
}

/** A queue with what most screens show: waiting, held and departed mail, a webhook, a suppression, a suspended destination. */
async function fillQueue(): Promise<void> {
  const { api, queue } = world
  await api.post('/subscriptions', { name: 'app', to: 'https://hooks.example/', types: ['message.*'], secret: SECRET }, { as: 'admin' })
  await api.post('/suppressions', { address: 'bob@full.example', reason: 'manual' }, { as: 'operator' })
  await world.fill(60)
  await queue.accept(['ann@ok.example', 'ann@full.example'], { sender: 'app@shop.example' })
  await queue.advance(MINUTE)
  const held = (await api.get('/messages')).json.messages[0]?.queue_id
  await api.post('/operations', { operation: 'hold', selection: { kind: 'ids', ids: [held] } }, { as: 'operator' })
  await api.post('/destinations/full.example/suspend', {}, { as: 'operator' })
  await queue.advance(MINUTE)
}

/** Null for a screen of something that cannot be done at present, such as to send an event again that waits for its turn. */
async function screenAt(place: string): Promise<Answer | null> {
  try {
    return await screens.screen(place)
  } catch (error) {
    if (error instanceof Problem && error.kind !== HTTP_PROBLEMS.invalid) return null
    throw error
  }
}

test('every link and form of the page has only parameters that its screen declares', async () => {
  await fillQueue()
  const [kinds, places] = [new Set<string>(), ['']]
  const refused: string[] = []
  for (let place = places.shift(); place !== undefined; place = places.shift()) {
    const added = kindsOf(place).filter((kind) => !kinds.has(kind))
    if (added.length === 0) continue
    for (const kind of added) kinds.add(kind)
    const answer = await screenAt(place)
    if (answer?.kind !== 'text' || !answer.contentType.startsWith('text/html')) continue
    if (answer.text.includes('Nothing was looked for')) refused.push(place)
    places.push(...placesIn(answer.text, place))
  }
  expect(refused).toEqual([])
  expect(kinds).toContain('/history/resend?recipient=…')
  expect(kinds).toContain('/suppressions/remove?scope=…')
  expect(kinds).toContain('/messages/:id/content?show=html')
})
