/**
 * Many domains behind one host that does not answer: its connections take a fifth of the slots, and its domains share one probe.
 * test/long/silent-host.long.ts has 200 domains with 30,500 messages.
 */
import { expect, test } from 'vitest'
import { SILENT, SilentHostStory } from '../support/silent-host-story.ts'

const UNTIL_2H = 'connect = "timeout"\nuntil = "2h"'

const minutesOf = (calls: readonly { readonly begunAt: number }[]) => calls.map(({ begunAt }) => Math.round(begunAt / 60))

test('50 domains on a dead host leave four fifths of the slots to other mail, and share its probes', async () => {
  const story = await SilentHostStory.open({ domains: 50, fault: UNTIL_2H })
  const { world } = story
  await story.acceptEach(3)
  await world.advance('15s')
  expect(world.relay.scheduler.destinations.slots).toEqual({ inFlight: 20, limit: 100, connecting: [{ address: SILENT, count: 20 }] })
  for (let n = 0; n < 20; n++) await story.accept(`user${n}@good.example`)
  await world.advance(0)
  expect(story.calls.filter(({ outcome }) => outcome === 'delivered')).toHaveLength(20)

  // When the host is known to be silent, only deliveries that had begun go on.
  await world.advance('2m')
  expect(story.mostAtOnce).toBe(20)
  expect(story.attempts.length).toBeLessThan(30)
  expect(story.count('dead')).toBe(50)
  const before = story.attempts.length
  await world.advance('117m')
  // At intervals of 5, 10, 20 and 40 minutes.
  expect(minutesOf(story.attempts.slice(before))).toEqual([6, 16, 37, 77])

  // One probe finds the answer of the host, and the mail of all domains follows.
  await world.advance('31m')
  expect(story.attempts.filter(({ outcome }) => outcome === 'delivered')).toHaveLength(150)
  expect(story.count('dead')).toBe(0)
})

test('a provider limit of 3 does not make the rounds of probes longer', async () => {
  const config = { provider: { dead: { mx: ['.silent.example'], provider_concurrency_limit: 3 } } }
  const story = await SilentHostStory.open({ domains: 50, fault: UNTIL_2H, config })
  await story.acceptEach(3)
  await story.world.advance('3m')
  // The first domain has had attempts with all its mail, so it follows its own schedule.
  expect(story.count('dead')).toBe(49)
  expect(story.attempts.length).toBeLessThan(12)
  const before = story.attempts.length
  await story.world.advance('40m')
  expect(story.attempts.slice(before).filter(({ destination }) => destination !== 'dead0.example').length).toBeLessThanOrEqual(4)
  await story.world.advance('2h')
  expect(story.attempts.filter(({ outcome }) => outcome === 'delivered')).toHaveLength(150)
})

test('after a restart, the domains that were dead share the probes again', async () => {
  const story = await SilentHostStory.open({ domains: 50, fault: UNTIL_2H })
  await story.acceptEach(3)
  await story.world.advance('3m')
  await story.world.restart()
  const before = story.attempts.length
  await story.world.advance('6m')
  // Until five deliveries in a row have failed, each domain is probed for itself.
  expect(story.attempts.length - before).toBeLessThan(30)
  const then = story.attempts.length
  await story.world.advance('70m')
  expect(story.attempts.slice(then).length).toBeLessThanOrEqual(6)
  await story.world.advance('80m')
  expect(story.attempts.filter(({ outcome }) => outcome === 'delivered')).toHaveLength(150)
})

test('a message alone at its destination keeps its schedule while others share the probes of its host', async () => {
  const story = await SilentHostStory.open({ domains: 12 })
  const [alone, ...others] = story.domains
  await story.accept(`ann@${alone}`)
  for (const domain of others) for (let n = 0; n < 3; n++) await story.accept(`user${n}@${domain}`)
  await story.world.advance('3h')
  const own = story.attempts.filter(({ destination }) => destination === alone).map(({ begunAt }) => begunAt)
  // 300, 600, 1200, 2400 and 4000 s after the end of an attempt of 30 s.
  expect(own).toEqual([0, 330, 960, 2190, 4620, 8650])
})

test('a greeting of the host to any delivery makes the probes of its domains due', async () => {
  const story = await SilentHostStory.open({ domains: 12, fault: 'connect = "timeout"\nuntil = "8m"' })
  await story.acceptEach(3)
  await story.world.advance('9m')
  expect(story.attempts.filter(({ outcome }) => outcome === 'delivered')).toEqual([])
  // The next probe is due after 16 minutes.
  await story.accept('ann@two.example')
  await story.world.advance('10s')
  expect(story.count('dead')).toBe(0)
  expect(story.attempts.filter(({ outcome }) => outcome === 'delivered').length).toBeGreaterThan(12)
})

test('mail with another host is sent there when the silent one has its share of the slots', async () => {
  const story = await SilentHostStory.open({ domains: 50 })
  await story.acceptEach(1)
  await story.world.advance('1s')
  for (let n = 0; n < 5; n++) await story.accept(`user${n}@two.example`)
  await story.world.advance('1s')
  expect(story.calls.filter(({ destination }) => destination === 'two.example').map(({ outcome }) => outcome)).toEqual(
    Array.from({ length: 5 }, () => 'delivered'),
  )
})

test('a host that greets late gets all mail when it has greeted once', async () => {
  const story = await SilentHostStory.open({ domains: 50, fault: 'at = "greeting"\ndelay = "6s"' })
  await story.acceptEach(2)
  await story.world.advance('5s')
  expect(story.world.relay.scheduler.destinations.slots.inFlight).toBe(20)
  await story.world.advance('30s')
  expect(story.attempts.filter(({ outcome }) => outcome === 'delivered')).toHaveLength(100)
  expect(story.mostAtOnce).toBeGreaterThan(50)
})

test('new mail for a host that is waited for leaves the active queue to other mail', async () => {
  // The host accepts connections and does not greet: it is known to be silent after smtp_helo_timeout, 300 s.
  const config = { qmgr_message_active_limit: 60, qmgr_message_recipient_limit: 60 }
  const story = await SilentHostStory.open({ domains: 50, fault: 'at = "greeting"\nstall = true', config })
  await story.acceptEach(1)
  await story.world.advance('1m')
  await story.acceptEach(2)
  for (let n = 0; n < 20; n++) await story.accept(`user${n}@good${n % 5}.example`)
  await story.world.advance('10s')
  expect(story.calls.filter(({ outcome }) => outcome === 'delivered')).toHaveLength(20)
})

test('mail that waits for a silent address is taken back by a hold', async () => {
  const story = await SilentHostStory.open({ domains: 30 })
  await story.acceptEach(1)
  await story.world.advance('10s')
  // The mail of the last domains has no slot, and is not in delivery.
  const waiting = story.world.relay.scheduler.destinations.all().filter(({ awaited }) => awaited.length > 0)
  expect(waiting).toHaveLength(10)
  expect(waiting[0]).toMatchObject({ inFlight: 0, inTransfer: [], awaited: [SILENT] })
  const { changed } = await story.world.operate('hold', 'all')
  expect(changed).toBe(30)
  await story.world.advance('10m')
  expect(story.attempts).toHaveLength(20)
})
