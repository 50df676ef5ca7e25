/** Facts of the screens: a lost node, a Message-ID that is not searched, the time of a print, the file of a download. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Now } from '../../src/queries/now.ts'
import { detailOf } from '../../src/page/screens/system/events-screen.ts'
import type { QueueView } from '../../src/queries/queue-view.ts'
import { SECOND } from '../../src/system/clock.ts'
import { ApiWorld } from '../support/api-world.ts'
import { PageScreens } from '../support/page-screens.ts'
import { wordsIn } from '../support/page-requests.ts'

let world: ApiWorld
let screens: PageScreens
let id: string | undefined

beforeAll(async () => {
  world = await ApiWorld.open('memory')
  screens = new PageScreens(world)
  ;[id] = await world.fill(1)
})
afterAll(() => world.close())

test('nodes without a beat for a lease, and those that were taken over, need attention', async () => {
  const { view } = world.api.api
  const lost = { name: 'n3', taker: 'n2', lostAt: view.clock.now() - SECOND }
  const nodes = () => ({ silent: () => [{ id: 1, name: 'n1' }], drained: () => [], nodes: { lost: async () => [lost] } })
  const shared: QueueView = Object.create(view, { nodes: { value: nodes } }) as QueueView
  const now = new Now(shared)
  expect((await now.value(null)).attention).toMatchObject([
    { kind: 'nodes-silent', count: 1, text: 'n1' },
    { kind: 'nodes-lost', count: 1, text: 'n3, taken over by n2', since: view.clock.wall.seconds(lost.lostAt) },
  ])
  now.close()
})

test('that all nodes drain needs attention: no mail is accepted or delivered', async () => {
  const { view } = world.api.api
  const nodes = () => ({ silent: () => [], drained: () => ['n1', 'n2'], nodes: { lost: async () => [] } })
  const shared: QueueView = Object.create(view, { nodes: { value: nodes } }) as QueueView
  const now = new Now(shared)
  expect((await now.value(null)).attention).toMatchObject([{ kind: 'nodes-draining', count: 2, text: 'n1, n2' }])
  expect(wordsIn(await new PageScreens(world, shared, now).text(''))).toContain(
    'Mail is neither accepted nor delivered: no node is active, and n1, n2 drain',
  )
  now.close()
})

test('a Message-ID is searched as one, and the answer says so', async () => {
  const answer = await screens.text('search?q=%3C2.1q%40shop.example%3E')
  expect(answer).toContain('By Message-ID, in the queue and in the history')
  expect(answer).toContain('No message is found.')
})

test('a print has its time, and a download the name of a mail file', async () => {
  const page = await screens.text(`messages/${id}`)
  expect(page).toMatch(/<p class="printed">\s*as of <time/)
  expect(page).toContain(`download="${id}.eml"`)
})

test('an event of an attempt without a reply has its reason, not the sender', () => {
  const data = { sender: 'app@us.example', reply: null, reason: 'connect to mx.far.example[192.0.2.1]:25: Connection refused' }
  expect(detailOf('recipient.deferred', data)).toBe(data.reason)
  expect(detailOf('recipient.deferred', { ...data, reply: '450 4.2.1 busy' })).toBe('450 4.2.1 busy')
})

test('mail of the first minute is not denied where its figures are not known yet', async () => {
  const words = wordsIn(await screens.text(''))
  expect(words).toContain('No figures of the last hour yet: those of mail follow when its minute has ended.')
  expect(wordsIn(await screens.text('trends?range=1h'))).toContain('No figures of this time are known.')
})
