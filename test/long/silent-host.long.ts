/**
 * A night with 30,500 messages in virtual time: one host with 200 domains is silent, others greylist, refuse or defer. Good mail does not wait,
 * and the figures from which the alerts are computed tell of each cause.
 */
import { expect, test } from 'vitest'
import { openMetrics } from '../../src/telemetry/metrics/metrics.ts'
import { SILENT, SilentHostStory } from '../support/silent-host-story.ts'

const RULES = `
[rule.greylisting]
domain = ".grey.example"
greylist = "5m"

[rule.blocked]
domain = "blocked.example"
at = "rcpt"
reply = "451 4.7.1 blocked using a list"

[rule.spam]
domain = "partner.example"
at = "end-of-data"
reply = "550 5.7.1 spam"

[rule.full]
domain = "full.example"
at = "rcpt"
reply = "452 4.2.2 mailbox full"
`

/** Messages by their domains. */
const NIGHT: readonly (readonly [messages: number, domain: (n: number) => string])[] = [
  [7_500, (n) => `dead${n % 200}.example`],
  [4_000, (n) => `d${n % 40}.grey.example`],
  [11_000, () => 'blocked.example'],
  [6_500, () => 'partner.example'],
  [1_000, () => 'full.example'],
]
const GOOD = 500

async function samples(story: SilentHostStory): Promise<(name: string) => number> {
  const { relay, store, clock } = story.world
  const metrics = openMetrics({
    clock,
    tally: (largest) => store.tally(largest),
    destinations: () => relay.scheduler.destinations.all(),
    slots: () => relay.scheduler.destinations.slots,
  })
  const text = await metrics.render()
  return (name) =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(`${name} `))
        ?.slice(name.length + 1) ?? 0,
    )
}

test('good mail starts within 10 s once the host is known to be silent', { timeout: 900_000 }, async () => {
  const story = await SilentHostStory.open({ domains: 200, fault: 'connect = "timeout"\nuntil = "3h"', rules: RULES })
  const { world } = story
  for (const [messages, domain] of NIGHT) for (let n = 0; n < messages; n++) await story.accept(`user${n}@${domain(n)}`)
  await world.advance('15s')
  const first = await samples(story)
  expect(first('deferd_delivery_slots')).toBe(100)
  expect(first('deferd_deliveries_in_flight')).toBeLessThan(100)
  expect(first(`deferd_deliveries_connecting{address="${SILENT}"}`)).toBe(20)

  await world.advance('16s')
  const known = 31
  for (let n = 0; n < GOOD; n++) await story.accept(`user${n}@good${n % 50}.example`)
  await world.advance('10s')
  const good = story.calls.filter(({ destination, outcome }) => destination.startsWith('good') && outcome === 'delivered')
  expect(good).toHaveLength(GOOD)
  const latest = Math.max(...good.map(({ begunAt }) => begunAt)) - known
  expect(latest).toBeLessThanOrEqual(10)
  expect(story.mostAtOnce).toBe(20)

  // DeferdDestinationsDead fires after half an hour; no slot is lost to the host meanwhile.
  for (let minute = 1; minute <= 35; minute++) {
    await world.advance('1m')
    if (minute < 2) continue
    const now = await samples(story)
    expect(now('deferd_destinations{state="dead"}')).toBeGreaterThan(10)
    expect(now('deferd_deliveries_in_flight')).toBeLessThan(20)
  }
  // Each round of probes of 200 domains is one delivery.
  const before = story.attempts.length
  await world.advance('80m')
  const probes = story.attempts.length - before
  expect(probes).toBeLessThan(60)

  // The host answers an hour later, and all its mail is delivered; no message is missing.
  await world.advance('2h')
  expect(story.attempts.filter(({ outcome }) => outcome === 'delivered')).toHaveLength(7_500)
  process.stdout.write(`good mail began at most ${latest} s after it was queued; ${probes} attempts with the silent host in 80 minutes\n`)
})
