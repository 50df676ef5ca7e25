/** Destinations of one provider share its limits, and its reply rules apply to all of them. */
import { describe, expect, test } from 'vitest'
import { loadTemplates } from '../../src/bounce/templates.ts'
import { configFrom } from '../../src/config/load.ts'
import { StoreUnavailable } from '../../src/store/queue-store.ts'
import { HOUR, MINUTE, SECOND, type Duration } from '../../src/system/clock.ts'
import { BEGINNING } from '../../src/testkit/virtual/virtual-clock.ts'
import { QueueWorld, type QueueWorldOptions } from '../support/queue-world.ts'
import type { Behaviour, Model } from '../support/modelled-remote.ts'

const names = (count: number): readonly string[] => Array.from({ length: count }, (_, n) => `customer${n}.example`)

/** Accepts mail in `takes`, and remembers how many deliveries to customers of the provider ran at once. */
function countingRemote(takes: Duration, behaviour: (at: Duration) => Behaviour | undefined = () => undefined) {
  const ends: Duration[] = []
  let most = 0
  const model: Model = ({ at, destination }) => {
    const answer = behaviour(at) ?? { kind: 'accepts', takes }
    if (!destination.startsWith('customer')) return answer
    ends.push(at + (answer.takes ?? 0))
    most = Math.max(most, ends.filter((end) => end > at).length)
    return answer
  }
  return { model, most: () => most }
}

const providerOf = (destination: string): string | null => (destination.startsWith('customer') ? 'big' : null)

type Table = Readonly<Record<string, unknown>>

const worldOf = (remote: Model, big: Table, more: Partial<QueueWorldOptions> = {}): Promise<QueueWorld> =>
  QueueWorld.create({
    remote,
    providerOf,
    ...more,
    config: { ...more.config, provider: { big: { mx: ['.big.example'], ...big } } },
  })

describe('a shared concurrency limit', () => {
  test('50 domains of one provider never have more than 5 deliveries at once, not even the first ones', async () => {
    const remote = countingRemote(2 * SECOND)
    const world = await worldOf(remote.model, { provider_concurrency_limit: 5 })
    for (const name of names(50)) for (let n = 0; n < 4; n++) await world.accept([`user${n}@${name}`])
    await world.advance(10 * MINUTE)
    expect(world.arrivals()).toHaveLength(200)
    expect(remote.most()).toBe(5)
    // 200 deliveries of 2 s, 5 at once: no slot was left unused for long.
    expect(world.arrivals().at(-1)?.at).toBeLessThan(85 * SECOND)
  })

  test('the destinations take turns', async () => {
    const world = await worldOf(countingRemote(SECOND).model, { provider_concurrency_limit: 1 })
    for (let n = 0; n < 30; n++) await world.accept([`user${n}@customer0.example`])
    for (const name of names(6).slice(1)) await world.accept([`late@${name}`])
    await world.advance(MINUTE)
    const begun = world.attempts().map(({ destination }) => destination)
    for (const name of names(6).slice(1)) expect(begun.indexOf(name)).toBeLessThan(14)
  })

  test('other mail does not wait', async () => {
    const world = await worldOf(countingRemote(10 * SECOND).model, { provider_concurrency_limit: 1 })
    for (const name of names(200)) await world.accept([`user@${name}`])
    await world.advance(MINUTE)
    await world.accept(['ann@other.example'])
    await world.advance(20 * SECOND)
    expect(world.arrivals('ann@other.example')).toHaveLength(1)
  })

  test('holds after a restart, and is shown', async () => {
    const remote = countingRemote(2 * SECOND)
    const world = await worldOf(remote.model, { provider_concurrency_limit: 2 })
    for (const name of names(10)) await world.accept([`user@${name}`])
    await world.advance(MINUTE)
    await world.restart()
    for (const name of names(10)) await world.accept([`user@${name}`])
    await world.advance(1)
    const [one] = world.relay.scheduler.destinations.all()
    expect(one?.provider).toMatchObject({ name: 'big', limit: 2, inFlight: 2 })
    await world.advance(MINUTE)
    expect(world.arrivals()).toHaveLength(20)
    expect(remote.most()).toBe(2)
    expect(await world.reader.records.providerMembers.providerOf('customer3.example')).toBe('big')
    expect(world.happened('note').filter(({ text }) => text.includes('belongs to provider big'))).toHaveLength(10)
  })

  test('a destination whose mail exchangers change leaves the provider', async () => {
    let provider: string | null = 'big'
    const remote = countingRemote(2 * SECOND)
    const world = await worldOf(remote.model, { provider_concurrency_limit: 1 }, { providerOf: () => provider })
    await world.accept(['ann@customer0.example'])
    await world.advance(MINUTE)
    provider = null
    for (let n = 0; n < 4; n++) await world.accept([`user${n}@customer0.example`])
    await world.advance(MINUTE)
    expect(world.arrivals()).toHaveLength(5)
    expect(remote.most()).toBeGreaterThan(1)
    expect(await world.reader.records.providerMembers.providerOf('customer0.example')).toBeNull()
  })

  test('mail exchangers that alternate between two answers do not hold up mail', async () => {
    let asked = 0
    const world = await worldOf(countingRemote(SECOND).model, {}, { providerOf: () => (asked++ % 2 === 0 ? 'big' : null) })
    for (let n = 0; n < 20; n++) await world.accept([`user${n}@customer0.example`])
    await world.advance(2 * MINUTE)
    expect(world.arrivals()).toHaveLength(20)
  })
})

test('the destinations share a message rate', async () => {
  const world = await worldOf(countingRemote(100).model, { provider_message_rate_limit: 60 })
  for (const name of names(30)) for (let n = 0; n < 4; n++) await world.accept([`user${n}@${name}`])
  await world.advance(MINUTE)
  expect(world.arrivals().length).toBeGreaterThan(55)
  expect(world.arrivals().length).toBeLessThanOrEqual(61)
  await world.advance(2 * MINUTE)
  expect(world.arrivals()).toHaveLength(120)
})

test('a refusal at one destination lowers the rate of all', async () => {
  const accepted = new Map<number, number>()
  const remote = countingRemote(200, (at) => {
    const minute = Math.floor(at / MINUTE)
    const count = accepted.get(minute) ?? 0
    if (count >= 100) return { kind: 'replies', reply: '451 4.7.0 too many messages', takes: 50 }
    accepted.set(minute, count + 1)
    return undefined
  })
  const world = await worldOf(remote.model, {})
  for (const name of names(50)) for (let n = 0; n < 20; n++) await world.accept([`user${n}@${name}`])
  await world.advance(HOUR)
  expect(world.arrivals()).toHaveLength(1_000)
  expect(world.attempts().length).toBeLessThan(1.25 * 1_000)
  expect(world.happened('note').some(({ text }) => text.startsWith('provider big: message rate lowered to'))).toBe(true)
})

test('the parameters of the table apply to its destinations, and those of a destination come first', async () => {
  const config = { destination: { 'customer1.example': { minimal_backoff_time: '1m' } } }
  const remote: Model = () => ({ kind: 'replies', reply: '450 later' })
  const world = await worldOf(remote, { minimal_backoff_time: '2m' }, { config })
  await world.accept(['ann@customer0.example'])
  await world.accept(['bob@customer1.example'])
  await world.accept(['eve@other.example'])
  await world.rest()
  await world.advance(SECOND)
  const dueOf = async (address: string) => Math.round((await world.dueAt(address)) ?? 0)
  expect([await dueOf('ann@customer0.example'), await dueOf('bob@customer1.example'), await dueOf('eve@other.example')]).toEqual([
    120, 60, 300,
  ])
})

describe('a suspension by an operator', () => {
  const suspension = { by: 'root', until: null, reason: 'maintenance' }
  const accepting = () => countingRemote(SECOND, () => undefined).model
  const shown = (world: QueueWorld, name: string) =>
    world.relay.scheduler.destinations.all().find(({ destination }) => destination === name)

  test('stops all destinations, also later ones, over a restart, until it is lifted', async () => {
    const world = await worldOf(accepting(), {})
    await world.accept(['ann@customer0.example'])
    await world.advance(MINUTE)
    expect(world.arrivals()).toHaveLength(1)
    await world.relay.schedulerControl.suspendProvider('big', suspension)
    for (const name of ['customer0', 'customer1', 'other']) await world.accept([`bob@${name}.example`])
    await world.advance(MINUTE)
    // The mail exchangers of customer1.example were looked up, and it had no connection.
    expect(world.arrivals()).toHaveLength(2)
    expect(shown(world, 'customer1.example')).toMatchObject({ state: 'suspended', suspension: { ...suspension, provider: 'big' } })
    expect(world.happened('provider-suspended')).toMatchObject([{ provider: 'big', by: 'root' }])
    await world.restart()
    await world.accept(['eve@customer2.example'])
    await world.advance(MINUTE)
    expect(world.arrivals()).toHaveLength(2)
    expect((await world.reader.destinationRecords()).map(({ name, suspension: one }) => [name, one?.by, one?.provider])).toEqual(
      ['customer0.example', 'customer1.example', 'customer2.example'].map((name) => [name, 'root', 'big']),
    )
    await world.relay.schedulerControl.resumeProvider('big', 'ann')
    await world.advance(MINUTE)
    expect(world.arrivals()).toHaveLength(5)
    expect(world.happened('provider-resumed')).toMatchObject([{ provider: 'big', by: 'ann' }])
  })

  test('and that of a destination must both be lifted', async () => {
    const world = await worldOf(accepting(), {})
    const { schedulerControl: control } = world.relay
    await world.store.joinProvider('customer0.example', 'big')
    await world.restart()
    const orders = [
      ['suspendProvider', 'big'],
      ['suspend', 'customer0.example'],
    ] as const
    for (const order of [orders, orders.toReversed()]) {
      for (const [verb, name] of order) await world.relay.schedulerControl[verb](name, suspension)
      const also = { provider: 'big', by: suspension.by, until: suspension.until }
      expect(shown(world, 'customer0.example')?.suspension).toEqual({ ...suspension, also })
      await world.accept(['ann@customer0.example'])
      await world.advance(MINUTE)
      const before = world.arrivals().length
      for (const [index, [verb, name]] of order.entries()) {
        await world.relay.schedulerControl[verb === 'suspend' ? 'resume' : 'resumeProvider'](name, 'root')
        await world.advance(MINUTE)
        expect(world.arrivals()).toHaveLength(before + index)
      }
    }
    expect(control.snapshot().every(({ state }) => state === 'open')).toBe(true)
  })

  test('ends at its time, and with the table of the provider', async () => {
    const world = await worldOf(accepting(), {})
    await world.store.joinProvider('customer0.example', 'big')
    await world.restart()
    await world.relay.schedulerControl.suspendProvider('big', { ...suspension, until: world.clock.now() + HOUR })
    await world.accept(['ann@customer0.example'])
    await world.advance(HOUR - SECOND)
    expect(world.arrivals()).toHaveLength(0)
    await world.advance(5 * SECOND)
    expect([world.arrivals().length, await world.reader.records.providers.suspensions()]).toEqual([1, []])
    await world.relay.schedulerControl.suspendProvider('big', suspension)
    await world.accept(['bob@customer0.example'])
    await world.advance(HOUR)
    expect(world.arrivals()).toHaveLength(1)
    const { config, written } = configFrom({}, 'relay.example')
    await world.relay.reload({ config, templates: loadTemplates({ config, written }).templates })
    await world.advance(MINUTE)
    expect([world.arrivals().length, await world.reader.records.providers.suspensions()]).toEqual([2, []])
  })

  test('ends with the table though the store is away; effects that ended with it, and a later order, stay as they are', async () => {
    const world = await worldOf(accepting(), { rule: [{ name: 'slow', reply: 'busy', for: '1h', action: 'concurrency 1' }] })
    const effect = { rule: 'slow', action: { kind: 'concurrency', limit: 1 }, until: world.clock.now() + HOUR, reply: '450 Busy' } as const
    await world.store.records.providers.save({ provider: 'big', effects: [effect] })
    await world.restart()
    await world.relay.schedulerControl.suspendProvider('big', suspension)
    expect(await world.store.records.providers.all()).toHaveLength(1)
    const { providers } = world.store.records
    const { resume } = providers
    let isAway = true
    Object.assign(providers, {
      resume: (...given: Parameters<typeof resume>) =>
        isAway ? Promise.reject(new StoreUnavailable('the disk is full')) : resume(...given),
    })
    const reloaded = async (table: Table) => {
      const { config, written } = configFrom(table, 'relay.example')
      await world.relay.reload({ config, templates: loadTemplates({ config, written }).templates })
    }
    await reloaded({})
    await world.advance(5 * SECOND)
    expect(await providers.all()).toEqual([])
    await reloaded({ provider: { big: { mx: ['.big.example'] } } })
    await world.relay.schedulerControl.suspendProvider('big', { ...suspension, by: 'ann' })
    isAway = false
    await world.advance(5 * SECOND)
    expect(await providers.all()).toEqual([])
    expect((await world.reader.records.providers.suspensions()).map((one) => one.suspension.by)).toEqual(['ann'])
  })

  test('stays beside a rule, whose end does not end it', async () => {
    const refuses = countingRemote(SECOND, (at) =>
      at < MINUTE ? { kind: 'replies', reply: '421 4.7.0 later', takes: 50 } : undefined,
    ).model
    const world = await worldOf(refuses, { rule: [{ reply: 'later', for: '10m', action: 'suspend' }] })
    await world.accept(['ann@customer0.example'])
    await world.advance(MINUTE)
    await world.relay.schedulerControl.suspendProvider('big', suspension)
    await world.advance(HOUR)
    expect([world.attempts().length, shown(world, 'customer0.example')?.suspension?.by]).toEqual([1, 'root'])
    await world.relay.schedulerControl.resumeProvider('big', 'root')
    await world.advance(MINUTE)
    expect(world.arrivals()).toHaveLength(1)
  })
})

describe('reply rules', () => {
  const TSS = '421 4.7.0 [TSS04] Messages temporarily deferred'
  const rule = (more: Table) => ({ rule: [{ reply: String.raw`\[TSS0[45]\]`, for: '2h', ...more }] })
  /** Refuses mail until a time. */
  const refusingUntil = (end: Duration): Model =>
    countingRemote(SECOND, (at) => (at < end ? { kind: 'replies', reply: TSS, takes: 50 } : undefined)).model

  test('a suspension stops all destinations, burns no retries, and ends', async () => {
    const world = await worldOf(refusingUntil(HOUR), rule({ action: 'suspend' }))
    await world.accept(['ann@customer0.example'])
    await world.advance(SECOND)
    await world.accept(['bob@customer1.example'])
    await world.accept(['eve@other.example'])
    await world.advance(HOUR + 30 * MINUTE)
    expect(world.attempts('customer0.example')).toHaveLength(1)
    // Its mail exchangers were looked up, and it had no connection.
    expect(world.attempts('customer1.example')).toHaveLength(0)
    const shown = world.relay.scheduler.destinations.all().find(({ destination }) => destination === 'customer0.example')
    expect(shown).toMatchObject({ state: 'suspended', suspension: { by: 'rule:big.1', reason: TSS } })
    expect((await world.reader.destinationRecords()).map(({ name, suspension }) => [name, suspension?.by])).toEqual([
      ['customer0.example', 'rule:big.1'],
      ['customer1.example', 'rule:big.1'],
    ])
    await world.advance(31 * MINUTE)
    expect(world.arrivals()).toHaveLength(3)
    expect(await world.reader.destinationRecords()).toEqual([])
    expect(
      (await world.reader.records.audit.after({ after: 0, limit: 10 })).map(({ who, action, changed }) => [who, action, changed]),
    ).toEqual([['rule:big.1', 'suspend', 1]])
    expect(world.happened('provider-suspended')).toMatchObject([{ provider: 'big', by: 'rule:big.1', reason: TSS }])
    expect(world.happened('provider-resumed')).toMatchObject([{ provider: 'big', by: expect.stringContaining('end') as string }])
  })

  test('a suspension survives a restart, and an operator ends it', async () => {
    const world = await worldOf(refusingUntil(MINUTE), rule({ action: 'suspend' }))
    await world.accept(['ann@customer0.example'])
    await world.advance(2 * MINUTE)
    await world.restart()
    await world.advance(30 * MINUTE)
    expect(world.attempts()).toHaveLength(1)
    await world.relay.scheduler.destinations.resumeProvider('big', 'root')
    await world.advance(2 * SECOND)
    expect(world.arrivals()).toHaveLength(1)
  })

  /** Settings with another table of the provider, or with none. */
  const settings = (big: Table | null) => {
    const { config, written } = configFrom(big === null ? {} : { provider: { big: { mx: ['.big.example'], ...big } } }, 'relay.example')
    return { config, templates: loadTemplates({ config, written }).templates }
  }

  test.each([{}, rule({ action: 'concurrency 1', name: 'other' }), null])('what a rule did ends with the rule (%j)', async (table) => {
    const world = await worldOf(refusingUntil(MINUTE), rule({ action: 'suspend' }))
    await world.accept(['ann@customer0.example'])
    await world.advance(2 * MINUTE)
    expect(await world.reader.records.providers.all()).toHaveLength(1)
    await world.relay.reload(settings(table))
    await world.advance(10 * MINUTE)
    expect(world.arrivals()).toHaveLength(1)
    expect([await world.reader.records.providers.all(), await world.reader.destinationRecords()]).toEqual([[], []])
  })

  test('what a rule did that is gone at a restart ends', async () => {
    const world = await worldOf(refusingUntil(0), rule({ action: 'suspend' }))
    const gone = { rule: 'gone', action: { kind: 'suspend' }, until: BEGINNING + 9 * HOUR, reply: TSS } as const
    await world.store.joinProvider('customer0.example', 'big')
    for (const provider of ['big', 'former']) await world.store.records.providers.save({ provider, effects: [gone] })
    await world.restart()
    await world.accept(['ann@customer0.example'])
    await world.advance(MINUTE)
    expect(world.arrivals()).toHaveLength(1)
    expect(await world.reader.records.providers.all()).toEqual([])
  })

  test('a rule waits for the number of its replies', async () => {
    const world = await worldOf(refusingUntil(3 * HOUR), rule({ action: 'suspend', after: '3 in 20m', name: 'tss' }))
    await world.accept(['ann@customer0.example'])
    await world.advance(HOUR)
    // Attempts at 0, 300, 900 s.
    expect(world.attempts()).toHaveLength(3)
    expect(world.relay.scheduler.destinations.all()[0]?.suspension?.by).toBe('rule:big.tss')
  })

  test('a limit by a rule applies to all destinations and ends', async () => {
    const remote = countingRemote(2 * SECOND, (at) => (at < SECOND ? { kind: 'replies', reply: TSS, takes: 50 } : undefined))
    const world = await worldOf(remote.model, rule({ action: 'concurrency 1', for: '5m' }))
    await world.accept(['ann@customer0.example'])
    await world.advance(2 * SECOND)
    for (const name of names(20)) await world.accept([`user@${name}`])
    await world.advance(2 * MINUTE)
    expect(remote.most()).toBe(1)
    expect(world.relay.scheduler.destinations.all()[0]?.provider).toMatchObject({ limit: 1, effects: [{ rule: '1', reply: TSS }] })
    await world.advance(4 * MINUTE)
    expect(world.relay.scheduler.destinations.all().every(({ provider }) => provider === null || provider.effects.length === 0)).toBe(true)
    for (const name of names(20)) await world.accept([`user@${name}`])
    await world.advance(MINUTE)
    expect(remote.most()).toBeGreaterThan(1)
    expect(world.arrivals()).toHaveLength(41)
  })

  test('a rate by a rule spaces the deliveries', async () => {
    const remote = countingRemote(100, (at) => (at < SECOND ? { kind: 'replies', reply: TSS, takes: 50 } : undefined))
    const world = await worldOf(remote.model, rule({ action: 'rate 6/min' }))
    await world.accept(['ann@customer0.example'])
    await world.advance(2 * SECOND)
    for (const name of names(40)) await world.accept([`user@${name}`])
    await world.advance(2 * MINUTE)
    expect(world.arrivals().length).toBeGreaterThanOrEqual(11)
    expect(world.arrivals().length).toBeLessThanOrEqual(13)
  })

  test('words of deferd itself match no rule', async () => {
    const remote: Model = () => ({ kind: 'refuses-connections' })
    const world = await worldOf(remote, { rule: [{ reply: 'connect', action: 'suspend', for: '1h' }] })
    await world.accept(['ann@customer0.example'])
    await world.advance(MINUTE)
    expect(world.relay.scheduler.destinations.all()[0]?.suspension).toBeNull()
  })
})
