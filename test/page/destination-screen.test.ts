/** The facts of the screen of a destination, from its resource. */
import { expect, test } from 'vitest'
import { destinationScreen } from '../../src/page/screens/destination-screen.ts'
import type { View } from '../../src/page/markup/view.ts'
import type { LiveDestination } from '../../src/queue/scheduler/destination.ts'
import { destinationDetailsJson } from '../../src/resources/destination-json.ts'
import type { DestinationLoad } from '../../src/store/queue-reader.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { configFrom } from '../../src/config/load.ts'
import { destinationDetails } from '../../src/queries/destinations.ts'
import { ApiWorld } from '../support/api-world.ts'
import { liveDestination } from '../support/live-destination.ts'
import { document } from '../../src/page/markup/frame.ts'
import { wordsIn } from '../support/page-requests.ts'
import { PageScreens } from '../support/page-screens.ts'

const NAME = 'far.example'

const clock = new VirtualClock()
const VIEW: View = {
  root: './',
  here: '',
  now: clock.wall.now(),
  clock,
  relay: 'relay.example',
  version: '1',
  files: 'static/x',
  classes: [],
  health: null,
  requester: { name: 'root', mayOperate: true, mayAdminister: true, mayReadContent: true },
}

/** The words of the screen, with its causes and senders still uncounted. */
function wordsOf(live: Partial<LiveDestination>, load?: DestinationLoad): string {
  const row = { name: NAME, load, live: liveDestination(NAME, live), record: undefined, provider: null }
  const details = { row, node: null, scheduled: 0, recent: undefined, settings: { table: null, values: {}, origins: {} }, asOf: VIEW.now }
  const facts = { destination: destinationDetailsJson(details, clock.wall), causes: null, senders: null, differing: [] }
  return destinationScreen(VIEW, facts)
    .main.markup.replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
}

test('the message rate is the same in the sentence and in the facts', () => {
  const load = { destination: NAME, waiting: 9, leased: 0, nextDueAt: 0 }
  for (const [rate, text] of [
    [9.6, 'at most 9.6 a minute'],
    [0.4, 'at most 0.4 a minute'],
    [1_200, 'at most 1,200 a minute'],
  ] as const) {
    const words = wordsOf({ messageRate: rate }, load)
    expect(words).toContain(`The next attempt is due now, ${text}.`)
    expect(words.toLowerCase()).toContain(`message rate ${text} `)
  }
})

test('the state of an open destination is unknown while no node schedules it, or its node does not answer', () => {
  const wordsWith = (node: string | null, live?: LiveDestination): string => {
    const row = { name: NAME, load: { destination: NAME, waiting: 9, leased: 3, nextDueAt: 0 }, live, record: undefined, provider: null }
    const details = { row, node, scheduled: 0, recent: undefined, settings: { table: null, values: {}, origins: {} }, asOf: VIEW.now }
    const destination = destinationDetailsJson(details, clock.wall)
    const view = { ...VIEW, node: 'mx-a', unanswered: () => ['mx-c'] }
    return wordsIn(document(view, destinationScreen(view, { destination, causes: null, senders: null, differing: [] })))
  }
  const missing = 'mx-c does not answer: the states of its destinations are those that the queue records, and its deliveries are missing.'
  expect(wordsWith('mx-c')).toMatch(/far\.example unknown .*Its node mx-c does not answer, so that its state is not known\./)
  expect(wordsWith('mx-c')).toContain(missing)
  expect(wordsWith(null)).toMatch(/far\.example unknown .*No node schedules it now: its mail waits until one does\./)
  expect(wordsWith('mx-b')).toMatch(/far\.example open .*Open: deliveries begin when mail is due\./)
  expect(wordsWith('mx-c', liveDestination(NAME, {}))).toContain('Open: deliveries begin when mail is due.')
})

test('each setting has the table that sets it, and the planner begins with those of the destination', async () => {
  const table = { maximal_queue_lifetime: '4m', minimal_backoff_time: '30s' }
  const settings = { destination: { 'a.example.org': table } }
  const world = await ApiWorld.open('memory', configFrom(settings, 'relay.example'), settings)
  try {
    await world.fill(1)
    const { settings: shown } = await destinationDetails(world.api.api.view, 'a.example.org', null)
    const own = '[destination."a.example.org"]'
    expect(shown.values).toMatchObject({ ...table, bounce_queue_lifetime: '4m' })
    expect(shown.origins).toEqual({ maximal_queue_lifetime: own, minimal_backoff_time: own, bounce_queue_lifetime: own })
    const screen = await new PageScreens(world).text('destinations/a.example.org')
    expect(screen).toMatch(/planner\?policy=doubling&amp;minimal=30s&amp;maximal=\w+&amp;lifetime=4m/)
    const general = /maximal_backoff_time[^]*?data-label="From">([^<]*)/.exec(screen)?.[1]
    expect(general).toBe('general')
  } finally {
    await world.close()
  }
})
