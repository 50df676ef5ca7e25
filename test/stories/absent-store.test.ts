/**
 * A store that is away when a delivery reads its content: the delivery costs no step of the retry schedule and no lifetime, and the mail
 * is tried again when the store is back.
 */
import { createTransport } from 'nodemailer'
import { afterEach, describe, expect, test } from 'vitest'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { intercepted, type QueueMethod } from '../../src/store/methods.ts'
import { ReadFailed, StoreUnavailable, type QueueStore } from '../../src/store/queue-store.ts'
import { createObservedWorld } from '../../src/testkit/create-world.ts'
import type { World } from '../../src/testkit/world.ts'
import type { WorldConfig } from '../../src/testkit/options/world-options.ts'

const ANN = 'ann@far.example'
const BOB = 'bob@far.example'
const MINUTE = 60_000

interface Trouble {
  readonly kind: 'memory' | 'sqlite'
  /** Index of the chunk whose first read begins the trouble. */
  readonly chunk?: number
  /** `all` calls fail for a minute; `reads` of contents do; or only this chunk cannot be read, for ever. */
  readonly what?: 'all' | 'reads' | 'damage'
  readonly config?: WorldConfig
  readonly text?: string
}

const worlds: World[] = []

afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

/** Calls that the trouble concerns, among them all that a delivery makes after its claim. */
const CALLS: ReadonlySet<string> = new Set<QueueMethod>(['readChunk', 'ping', 'settle', 'giveBack', 'claimDue', 'enqueue', 'stage'])

/** A store without trouble until a chunk is read, and the number of these reads. */
function troubled(store: QueueStore, now: () => number, { chunk = 0, what = 'all' }: Trouble) {
  const state = { reads: 0, backAt: 0 }
  const failing = intercepted(store, (method, args, perform) => {
    if (!CALLS.has(method)) return perform()
    const isRead = method === 'readChunk' && args[1] === chunk
    if (isRead && ++state.reads === 1 && what !== 'damage') state.backAt = now() + MINUTE
    if (isRead && what === 'damage') return Promise.reject(new ReadFailed('I/O error'))
    if (now() < state.backAt && (what === 'all' || method === 'readChunk'))
      return Promise.reject(new StoreUnavailable('the database cannot be reached'))
    return perform()
  })
  return { failing, state }
}

/** Mail to two recipients of a host that is busy until its second attempt, at 300 s. That one finds no content in memory. */
async function waitingMail(trouble: Trouble) {
  const state = { reads: () => 0 }
  const world = await createObservedWorld(
    { store: trouble.kind, ...(trouble.config === undefined ? {} : { config: trouble.config }) },
    {
      store: (store, { clock }) => {
        const { failing, state: seen } = troubled(store, () => clock.now(), trouble)
        state.reads = () => seen.reads
        return failing
      },
    },
  )
  worlds.push(world)
  world.rule({ at: 'rcpt', reply: '450 4.2.1 busy', until: '200s' })
  await createTransport(world.transport()).sendMail({ from: 'app@us.example', to: [ANN, BOB], text: trouble.text ?? 'hi' })
  await world.advance('1s')
  const outcomes = (address: string) => world.attempts(address).map(({ at, outcome, status }) => [Math.round(at), outcome, status])
  return { world, outcomes, reads: () => state.reads() }
}

describe.each(['memory', 'sqlite'] as const)('a queue in %s', (kind) => {
  test.each(['all', 'reads'] as const)('that refuses %s for a minute delivers the mail after it', async (what) => {
    const { world, outcomes } = await waitingMail({ kind, what })
    await world.advance('358s')
    expect(outcomes(ANN)).toEqual([[0, 'deferred', '4.2.1']])
    await world.advance('2s')
    for (const address of [ANN, BOB]) {
      expect(outcomes(address)).toEqual([
        [0, 'deferred', '4.2.1'],
        [360, 'delivered', '2.0.0'],
      ])
    }
  })

  test('that is away during the last attempt does not expire the mail', async () => {
    const { world, outcomes } = await waitingMail({ kind, config: { maximal_queue_lifetime: '300s', bounce_queue_lifetime: '300s' } })
    await world.advance('10m')
    expect(outcomes(ANN).at(-1)).toEqual([360, 'delivered', '2.0.0'])
    expect(world.mailbox('app@us.example').notices()).toEqual([])
  })

  test('that is away in the middle of a content keeps the outcomes of the envelope', async () => {
    const { world, outcomes } = await waitingMail({ kind, chunk: 1, text: 'long line\r\n'.repeat(20_000) })
    world.rule({ recipient: BOB, at: 'rcpt', reply: '550 5.1.1 no such user' })
    await world.advance('10m')
    expect(outcomes(BOB)).toEqual([
      [0, 'deferred', '4.2.1'],
      [300, 'bounced', '5.1.1'],
    ])
    expect(outcomes(ANN)).toEqual([
      [0, 'deferred', '4.2.1'],
      [360, 'delivered', '2.0.0'],
    ])
    expect(world.mailbox(ANN).mails()).toHaveLength(1)
  })

  test('that commits but cannot return one content defers this message, with growing waits, and accepts mail', async () => {
    const { world, outcomes, reads } = await waitingMail({ kind, what: 'damage' })
    await world.advance('1h')
    const unread = outcomes(ANN).slice(1)
    expect(unread.map(([at]) => at)).toEqual([300, 900, 2100])
    expect(new Set(unread.map(([, outcome, status]) => `${String(outcome)} ${String(status)}`))).toEqual(new Set(['deferred 4.3.0']))
    expect(reads()).toBe(4 * unread.length)
    await createTransport(world.transport()).sendMail({ from: 'app@us.example', to: 'eve@near.example', text: 'hi' })
    await world.advance('1s')
    expect(world.mailbox('eve@near.example').mails()).toHaveLength(1)
    expect(await world.reader.list(ANY_MESSAGE, { after: 0, limit: 10 })).toHaveLength(1)
  })
})
