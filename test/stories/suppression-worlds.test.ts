/** The suppression list in random worlds: the recipients that RCPT refuses and the entries are those of a model. */
import { expect, test } from 'vitest'
import { DAY, HOUR, MINUTE, SECOND, type Duration } from '../../src/system/clock.ts'
import { createWorld } from '../../src/testkit/create-world.ts'
import type { World } from '../../src/testkit/world.ts'
import { Dice } from '../simulation/generator.ts'
import { dialogue } from '../support/world-dialogue.ts'

const ADDRESSES = ['bob', 'ann'].map((name) => `${name}@far.example`)
const SENDERS = ['app@us.example', 'app@us.example', 'news@us.example', 'shop@other.example', '']
/** The last one is longer than a first listing lasts. */
const WAITS = [10 * MINUTE, 59 * MINUTE, HOUR, HOUR, 61 * MINUTE, 61 * MINUTE, 5 * HOUR, 31 * DAY]
const [INTERVAL, WINDOW] = [HOUR, 5 * HOUR]

interface Entry {
  readonly by: 'failures' | 'an operator'
  readonly strikes: readonly Duration[]
  readonly listings: number
  /** Time until which RCPT is refused. */
  readonly until: Duration
}

const FRESH: Entry = { by: 'failures', strikes: [], listings: 0, until: 0 }

class Model {
  readonly #entries = new Map<string, Entry>()

  refuses(scope: string, address: string, now: Duration): boolean {
    return scope !== '' && [`${scope} ${address}`, `* ${address}`].some((key) => (this.#entries.get(key)?.until ?? 0) > now)
  }

  refused(scope: string, address: string, now: Duration): void {
    const known = this.#entries.get(`${scope} ${address}`) ?? FRESH
    const strikes = known.strikes.filter((at) => at > now - WINDOW)
    if (scope === '' || known.until > now || now - (strikes.at(-1) ?? -Infinity) < INTERVAL) return
    const listings = known.listings + 1
    const isListed = strikes.length > 0
    this.#entries.set(
      `${scope} ${address}`,
      isListed
        ? { by: 'failures', strikes: [], listings, until: now + Math.min(365, 30 * 2 ** known.listings) * DAY }
        : { ...known, strikes: [now] },
    )
  }

  delivered(scope: string, address: string): void {
    if (this.#entries.get(`${scope} ${address}`)?.by === 'failures') this.#entries.delete(`${scope} ${address}`)
  }

  added(scope: string, address: string): void {
    this.#entries.set(`${scope} ${address}`, { ...FRESH, by: 'an operator', until: Infinity })
  }

  removed(scope: string, address: string): void {
    this.#entries.delete(`${scope} ${address}`)
  }

  listed(now: Duration): readonly string[] {
    return [...this.#entries].flatMap(([key, { until }]) => (until > now ? [key] : [])).toSorted()
  }
}

async function listedIn(world: World): Promise<readonly string[]> {
  const filter = { scope: null, address: null, reason: null, destination: null, since: null }
  const after = { scope: '', address: '' }
  const page = await world.store.records.suppressions.page({ ...filter, now: world.clock.now(), after, limit: 100 })
  return page.map(({ scope, address }) => `${scope} ${address}`).toSorted()
}

/** Adds or removes the entry of an address, for all senders or one domain. */
async function operate(world: World, model: Model, { dice, address }: { readonly dice: Dice; readonly address: string }): Promise<void> {
  const scope = dice.one(['*', 'us.example'])
  if (dice.chance(0.5)) {
    await world.suppress(address, { scope, reason: 'manual' })
    model.added(scope, address)
    return
  }
  const selection = { kind: 'keys', keys: [{ scope, address }] } as const
  await world.relay.suppressions.changes.remove({ selection, dryRun: false, who: 'op' })
  model.removed(scope, address)
}

const SEEDS = Array.from({ length: 20 }, (_, n) => n + 1)
/** Numbers of recipients of all worlds. */
const seen = { refused: 0, bounced: 0, delivered: 0 }

test.each(SEEDS)('seed %i: RCPT refuses whom the model refuses', async (seed) => {
  const dice = new Dice(seed)
  const times = { suppression_bounce_interval: '1h', suppression_bounce_window: '5h', queue_run_delay: '0' }
  await using world = await createWorld({ config: { suppression: 'yes', ...times }, store: dice.one(['memory', 'sqlite']) })
  const model = new Model()
  const gone = new Set(ADDRESSES)
  for (let number = 0; number < 30; number++) {
    await world.advance(dice.one(WAITS) / SECOND)
    const address = dice.one(ADDRESSES)
    if (dice.chance(0.1)) gone[gone.has(address) ? 'delete' : 'add'](address)
    if (dice.chance(0.05)) await world.restart()
    if (dice.chance(0.05)) await operate(world, model, { dice, address })
    world.destination('far.example').recovers()
    for (const one of gone) world.destination('far.example').rejects(one, '550 5.1.1 no such user')
    const sender = dice.one(SENDERS)
    const scope = sender.replace(/.*@/, '')
    const now = world.clock.now()
    const isRefused = model.refuses(scope, address, now)
    const rcpt = `RCPT TO:<${dice.chance(0.5) ? address : address.replace('far.example', 'FAR.example')}>`
    const content = isRefused ? [] : ['DATA', 'Subject: hi\r\n\r\nhi\r\n.']
    const replies = await dialogue(world, ['HELO app', `MAIL FROM:<${sender}>`, rcpt, ...content])
    expect(replies[2]).toMatch(isRefused ? /^550 5\.1\.1 .* on the suppression list since / : /^250 /)
    await world.advance(0)
    if (isRefused) seen.refused++
    else if (gone.has(address)) {
      seen.bounced++
      model.refused(scope, address, now)
    } else {
      seen.delivered++
      model.delivered(scope, address)
    }
    expect(await listedIn(world)).toEqual(model.listed(now))
  }
})

test('the worlds have recipients that are refused, that bounce, and that get their mail', () => {
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(20)
})
