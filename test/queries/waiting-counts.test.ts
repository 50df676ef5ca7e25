/** Counts of waiting recipients after their mail has entered the active queue or left it, while the count of the store is some seconds old. */
import { afterEach, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { Now } from '../../src/queries/now.ts'
import { providerDetails, providerList } from '../../src/queries/providers.ts'
import type { QueueView } from '../../src/queries/queue-view.ts'
import { waitingAt } from '../../src/store/destination-status.ts'
import type { QueueTally } from '../../src/store/counts/queue-tally.ts'
import { HOUR, SECOND } from '../../src/system/clock.ts'
import { ApiWorld } from '../support/api-world.ts'
import { PageScreens } from '../support/page-screens.ts'

const NAME = 'slow.example'
const OPERATOR = { who: 'root', duration: null, reason: null }
/** The window admits five deliveries, which take an hour. */
const [ALL, IN_FLIGHT] = [14, 5]

let world: ApiWorld | undefined
let now: Now | undefined
afterEach(async () => {
  now?.close()
  await world?.close()
  now = world = undefined
})

const tables = { provider: { slowmail: { mx: ['.slow.example'] } } }

async function opened(store: 'memory' | 'sqlite'): Promise<ApiWorld> {
  const providerOf = (destination: string) => (destination === NAME ? 'slowmail' : null)
  world = await ApiWorld.open(store, configFrom(tables, 'relay.example'), tables, { providerOf })
  return world
}

/** The view of a node whose counts of the queue are those of the time of `keep`, as a node of a shared queue keeps them. */
function withKeptTally(view: QueueView): { readonly view: QueueView; readonly keep: () => Promise<void> } {
  let kept: QueueTally | undefined
  const tally = async (largest: number) => kept ?? (await view.tally(largest))
  const live = {
    ...view.live,
    brief: async () => {
      const brief = await view.live.brief()
      return { ...brief, tally: kept ?? brief.tally }
    },
  }
  const own: Partial<QueueView> = { tally, live }
  const keeping = new Proxy(view, { get: (target, name): unknown => Reflect.get(name in own ? own : target, name) })
  return { view: keeping, keep: async () => void (kept = await view.tally(10_000)) }
}

async function shownIn(view: QueueView, screens: PageScreens): Promise<unknown> {
  const { providers } = await providerList(view)
  const one = await providerDetails(view, 'slowmail')
  const { largest_destinations: largest } = await (now as Now).value(null)
  const text = await screens.text('providers/slowmail')
  return {
    list: providers.map(({ waiting }) => waiting),
    one: [one.waiting, one.waiting_destinations],
    now: largest.map(({ destination, waiting }) => ({ destination, waiting })),
    sentence: /(?:\d+|No) (?:recipients|mail) waits?/.exec(text)?.[0],
    cell: /data-live="waiting"[^>]*>(\d+)</.exec(text)?.[1],
  }
}

const shown = (waiting: number) => ({
  list: [waiting],
  one: [waiting, [{ destination: NAME, waiting }]],
  now: [{ destination: NAME, waiting }],
  sentence: `${waiting} recipients wait`,
  cell: String(waiting),
})

test('a count from before a resume or a suspension has each waiting recipient once', async () => {
  const { queue, api } = await opened('memory')
  const { view, keep } = withKeptTally(api.api.view)
  now = new Now(view)
  const screens = new PageScreens(world as ApiWorld, view, now)
  // The first delivery shows the provider.
  await queue.accept([`ann@${NAME}`])
  await queue.advance(2 * HOUR)
  await view.operations().suspendProvider('slowmail', OPERATOR)
  for (let n = 0; n < ALL; n++) await queue.accept([`user${n}@${NAME}`])
  await queue.advance(SECOND)
  expect(await shownIn(view, screens)).toEqual(shown(ALL))

  await keep()
  await view.operations().resumeProvider('slowmail', { who: 'root' })
  await queue.advance(2 * SECOND)
  expect(await shownIn(view, screens)).toEqual(shown(ALL - IN_FLIGHT))

  await keep()
  await view.operations().suspendProvider('slowmail', OPERATOR)
  await queue.advance(2 * SECOND)
  expect(await shownIn(view, screens)).toEqual(shown(ALL - IN_FLIGHT))
})

test('mail that came after the count waits too, once it has entered the active queue', async () => {
  const { queue, api } = await opened('memory')
  const { view, keep } = withKeptTally(api.api.view)
  now = new Now(view)
  await keep()
  for (let n = 0; n < ALL; n++) await queue.accept([`user${n}@${NAME}`])
  await queue.advance(2 * SECOND)
  expect((await now.value(null)).largest_destinations).toMatchObject([{ destination: NAME, waiting: ALL - IN_FLIGHT }])
})

test.each(['memory', 'sqlite'] as const)(
  'a destination whose mail has all been claimed has what Now read before no more (%s)',
  async (store) => {
    const { queue, api } = await opened(store)
    const { view } = api.api
    now = new Now(view)
    await view.operations().suspend(NAME, OPERATOR)
    for (let n = 0; n < ALL; n++) await queue.accept([`user${n}@${NAME}`])
    await queue.advance(SECOND)
    const largest = async () => (await (now as Now).value(null)).largest_destinations.map(({ waiting }) => waiting)
    expect(await largest()).toEqual([ALL])
    await view.operations().resume(NAME, { who: 'root' })
    await queue.advance(2 * SECOND)
    expect(await largest()).toEqual([ALL - IN_FLIGHT])
    await queue.advance(3 * HOUR)
    expect(await largest()).toEqual([])
    expect(queue.relay.scheduler.destinations.status(NAME)).toMatchObject({ waiting: 0, inFlight: 0, transferring: 0 })
  },
)

test('the counts of a node of an earlier version are added', () => {
  expect(waitingAt({ waiting: 5 }, { waiting: 3, transferring: 1 })).toBe(8)
  expect(waitingAt({ waiting: 5, leased: 4 }, { waiting: 3 })).toBe(8)
})
