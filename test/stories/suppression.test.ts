/** The suppression list of a relay: what lists an address, what it refuses, and what ends an entry. */
import nodemailer from 'nodemailer'
import { describe, expect, test } from 'vitest'
import type { RelayConfig } from '../../src/config/relay-config.ts'
import { createWorld, matchers, type World } from '../../src/testkit/index.ts'
import { attentionIn } from '../support/attention.ts'
import { closeAtEnd } from '../support/open-worlds.ts'

const GONE = '550 5.1.1 no such user'

async function worldOf(config: RelayConfig = {}): Promise<World> {
  const world = await createWorld({ config: { suppression: 'yes', ...config } })
  closeAtEnd(world)
  return world
}

/** Sends a mail by SMTP. Returns the replies to refused recipients. */
async function send(world: World, to: string | readonly string[], from = 'app@us.example'): Promise<readonly string[]> {
  try {
    const sent = (await nodemailer
      .createTransport(world.transport())
      .sendMail({ from, to: [...(typeof to === 'string' ? [to] : to)], text: 'hi' })) as {
      rejectedErrors?: readonly { response: string }[]
    }
    await world.advance(0)
    return (sent.rejectedErrors ?? []).map(({ response }) => response)
  } catch (error) {
    return [String((error as { readonly response?: string }).response ?? error)]
  }
}

const REFUSAL = `550 5.1.1 <bob@far.example>: Recipient address rejected: on the suppression list since 2026-01-01 (bounce, "${GONE}"); see deferd suppression show`

/** A world in which bob@far.example is listed for us.example. */
async function listed(config: RelayConfig = {}): Promise<World> {
  const world = await worldOf(config)
  world.destination('far.example').rejects('bob@far.example', GONE)
  expect(await send(world, 'bob@far.example')).toEqual([])
  await world.advance('13h')
  expect(await send(world, 'bob@far.example')).toEqual([])
  return world
}

describe('what lists an address', () => {
  test('two refusals as unknown 13 hours apart: from then on, RCPT of this recipient gets 550', async () => {
    const world = await listed()
    expect(await send(world, ['bob@far.example', 'ann@far.example'])).toEqual([REFUSAL])
    expect(world.mailbox('ann@far.example').mails()).toHaveLength(1)
    expect(world.attempts('bob@far.example')).toHaveLength(2)
    expect(await world.store.records.suppressions.ofAddress('bob@far.example')).toMatchObject([
      { scope: 'us.example', reason: 'bounce', reply: GONE, hits: 2, destination: 'far.example', addedBy: 'deferd' },
    ])
  })

  test('two refusals 1 hour apart do not', async () => {
    const world = await worldOf()
    world.destination('far.example').rejects('bob@far.example', GONE)
    for (let n = 0; n < 3; n++) {
      expect(await send(world, 'bob@far.example')).toEqual([])
      await world.advance('1h')
    }
    expect(await send(world, 'bob@far.example')).toEqual([])
  })

  test.each(['550 5.7.1 blocked for your reputation', '550 no such user', '552 5.2.2 mailbox full'])('%s does not', async (reply) => {
    const world = await worldOf()
    world.destination('far.example').rejects('bob@far.example', reply)
    for (let n = 0; n < 4; n++) {
      expect(await send(world, 'bob@far.example')).toEqual([])
      await world.advance('13h')
    }
    expect(await world.store.records.suppressions.ofAddress('bob@far.example')).toEqual([])
  })

  test('senders of other domains, notices and the postmaster are not concerned', async () => {
    const world = await listed()
    expect(await send(world, 'bob@far.example', 'app@other.example')).toEqual([])
    expect(await send(world, 'bob@far.example', '<>')).toEqual([])
    world.destination('far.example').rejects('postmaster@far.example', GONE)
    for (let n = 0; n < 3; n++) {
      expect(await send(world, 'postmaster@far.example')).toEqual([])
      await world.advance('13h')
    }
  })

  test('with warn, the recipient is accepted; with no, nothing is kept', async () => {
    const world = await listed({ suppression: 'warn' })
    const told: unknown[] = []
    world.relayEvents.listen((event) => event.kind === 'suppressed' && told.push(event))
    expect(await send(world, 'bob@far.example')).toEqual([])
    expect(told).toMatchObject([{ recipient: 'bob@far.example', scope: 'us.example', action: 'warned' }])
    const off = await listed({ suppression: 'no' })
    expect(await send(off, 'bob@far.example')).toEqual([])
    expect(await off.store.records.suppressions.ofAddress('bob@far.example')).toEqual([])
  })
})

test('a recipient that is refused for another reason is not among those that the list refused', async () => {
  const world = await worldOf({ transport_maps: { 'far.example': 'error:5.1.2 moved' } })
  await world.suppress('bob@far.example')
  const told: unknown[] = []
  world.relayEvents.listen((event) => event.kind === 'suppressed' && told.push(event))
  expect(await send(world, 'bob@far.example')).toEqual(['550 5.1.2 <bob@far.example>: Recipient address rejected: moved'])
  expect(told).toEqual([])
})

describe('in a test of an application', () => {
  test('a matcher tells who was refused', async () => {
    const world = await worldOf()
    await world.suppress('bob@far.example', { scope: 'us.example', reason: 'unsubscribe' })
    expect(await send(world, ['bob@far.example', 'ann@far.example'])).toHaveLength(1)
    const find = (address: string, times?: number) => matchers.toHaveBeenSuppressed.call({ isNot: false }, world.recipient(address), times)
    expect(find('bob@far.example').pass).toBe(true)
    expect(find('bob@far.example', 2).pass).toBe(false)
    expect(find('bob@far.example', 2).message()).toContain('+0s refused: on the suppression list of us.example (unsubscribe)')
    expect(find('ann@far.example').pass).toBe(false)
    expect(() => matchers.toHaveBeenSuppressed.call({ isNot: true }, world.recipient('eve@far.example'))).toThrow(TypeError)
    await expect(world.suppress('bob')).rejects.toThrow(TypeError)
  })
})

describe('the brakes', () => {
  test('where more than a fifth of 20 recipients are unknown within an hour, nobody is listed and the postmaster is told', async () => {
    const world = await worldOf()
    const users = Array.from({ length: 24 }, (_, n) => `user${n}@far.example`)
    world.destination('far.example').rejects('bob@far.example', GONE)
    for (const user of users.slice(0, 8)) world.destination('far.example').rejects(user, GONE)
    expect(await send(world, 'bob@far.example')).toEqual([])
    await world.advance('13h')
    expect(await send(world, users)).toEqual([])
    // Its second refusal, while the directory of the destination is down.
    expect(await send(world, 'bob@far.example')).toEqual([])
    await world.advance('1m')
    expect(await send(world, 'bob@far.example')).toEqual([])
    // Its first refusal was before.
    expect(await world.store.records.suppressions.changes({ seq: 0, scope: '', address: '' }, 100)).toMatchObject([
      { address: 'bob@far.example' },
    ])
    expect(await world.store.records.suppressions.of('us.example', 'bob@far.example')).toMatchObject({ reason: null, hits: 1 })
    const mails = world.received.filter(({ recipients }) => recipients.some((one) => one.startsWith('postmaster@')))
    expect(mails.map(({ content }) => /^Subject: (.*)$/m.exec(content.toString())?.[1]?.trim())).toEqual([
      'Too many unknown recipients at far.example',
    ])
  })

  test('after 1,000 listings of a sender domain within an hour, the next one waits for an operator', async () => {
    const world = await worldOf()
    const now = world.clock.now()
    const entry = (n: number, at: number) => ({
      scope: 'us.example',
      address: `user${n}@near.example`,
      reason: 'bounce' as const,
      reply: GONE,
      destination: 'near.example',
      since: at,
      until: at + 86_400_000 * 30,
      hits: 2,
      firstHitAt: at,
      lastHitAt: at,
      addedBy: 'deferd',
      listings: 1,
      strikes: [],
    })
    world.destination('far.example').rejects('bob@far.example', GONE)
    expect(await send(world, 'bob@far.example')).toEqual([])
    await world.advance('13h')
    await world.store.records.suppressions.putAll(Array.from({ length: 1_000 }, (_, n) => entry(n, now + 13 * 3_600_000)))
    expect(await send(world, 'bob@far.example')).toEqual([])
    expect(await send(world, 'bob@far.example')).toEqual([])
    expect(await world.store.records.suppressionStops.all()).toMatchObject([{ scope: 'us.example' }])
    expect(await attentionIn(world)).toMatchObject([{ kind: 'listings-stopped', count: 1 }])
    expect(await world.relay.suppressions.changes.resume('us.example', { who: 'op' })).toBe(true)
    await world.advance('1h')
    expect(await send(world, 'bob@far.example')).toEqual([])
    expect(await send(world, 'bob@far.example')).toHaveLength(1)
  })
})

describe('what ends an entry', () => {
  test('a delivery lifts what refusals listed', async () => {
    const world = await worldOf({ smtpd_future_release_limit: '1d' })
    world.destination('far.example').rejects('bob@far.example', GONE)
    const early = await world.submit({ from: 'app@us.example', to: 'bob@far.example', notBefore: '14h' })
    expect(early).not.toBe('')
    expect(await send(world, 'bob@far.example')).toEqual([])
    await world.advance('13h')
    expect(await send(world, 'bob@far.example')).toEqual([])
    expect(await send(world, 'bob@far.example')).toHaveLength(1)
    world.destination('far.example').recovers()
    // Mail that was accepted before the listing is delivered, and shows that the address exists.
    await world.advance('1h')
    expect(world.mailbox('bob@far.example').mails()).toHaveLength(1)
    expect(await send(world, 'bob@far.example')).toEqual([])
  })

  test('it ends after 30 days, and a later one after 60', async () => {
    const world = await listed()
    await world.advance('29d')
    expect(await send(world, 'bob@far.example')).toHaveLength(1)
    await world.advance('2d')
    expect(await send(world, 'bob@far.example')).toEqual([])
    await world.advance('13h')
    expect(await send(world, 'bob@far.example')).toEqual([])
    await world.advance('59d')
    expect(await send(world, 'bob@far.example')).toHaveLength(1)
    await world.advance('2d')
    expect(await send(world, 'bob@far.example')).toEqual([])
  })

  test('entries of operators stay at a delivery, concern a domain and all senders, and survive a restart', async () => {
    const world = await worldOf()
    const { changes } = world.relay.suppressions
    const more = { reason: 'unsubscribe', text: null, duration: null } as const
    await changes.add({ scope: '*', address: '@far.example', ...more }, { who: 'op' })
    expect(await send(world, 'ann@far.example', 'any@any.example')).toEqual([
      '550 5.1.1 <ann@far.example>: Recipient address rejected: on the suppression list since 2026-01-01 (unsubscribe); see deferd suppression show',
    ])
    await world.restart()
    expect(await send(world, 'ann@far.example')).toHaveLength(1)
    const filter = { scope: null, address: null, reason: 'unsubscribe', destination: null, since: null } as const
    const removal = { selection: { kind: 'filter', filter }, who: 'op' } as const
    const { changes: later } = world.relay.suppressions
    expect(await later.remove({ ...removal, dryRun: true })).toMatchObject({ count: 1 })
    expect(await send(world, 'ann@far.example')).toHaveLength(1)
    expect(await later.remove({ ...removal, dryRun: false })).toMatchObject({ count: 1 })
    expect(await send(world, 'ann@far.example')).toEqual([])
  })
})
