/** With any script, the remote servers neither fail nor hang, and every session ends. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { HOUR } from '../../../src/system/clock.ts'
import { CONNECT_FAULTS, DNS_FAULTS, SPOKEN_STAGES, type Rule } from '../../../src/testkit/remote/rule.ts'
import type { RuleText } from '../../../src/testkit/remote/rule-keys.ts'
import { readRule } from '../../../src/testkit/remote/rule-reader.ts'
import { openRemote } from '../../support/remote-harness.ts'

const when: fc.Arbitrary<RuleText> = fc.oneof(
  fc.constant({}),
  fc.record({ first: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ every: fc.integer({ min: 1, max: 3 }), per: fc.constantFrom('rule', 'recipient', 'client', 'mx') }),
  fc.record({ probability: fc.constantFrom('10%', '50%', '90%') }),
  fc.record({ flapping: fc.constantFrom('2m/3m', '7m/1m') }),
)

const said: fc.Arbitrary<RuleText> = fc.oneof(
  fc.record({
    reply: fc.constantFrom('250 ok', '220 ok', '354 go on', '421 4.3.2 no', '450 4.2.1 busy\n450 4.2.1 really', '550 5.1.1 never'),
  }),
  fc.record({ raw: fc.string({ unit: fc.constantFrom('2', '5', '0', ' ', '-', '\r', '\n', '\u0000', '\u00ff', 'x'), maxLength: 20 }) }),
  fc.record({ drop: fc.constantFrom('fin', 'rst') }),
  fc.constant({ stall: true }),
  fc.record({ cut: fc.integer({ min: 0, max: 20 }) }),
  fc.record({ delay: fc.constantFrom('1s', '5m') }),
)

const shape: fc.Arbitrary<RuleText> = fc.oneof(
  fc.constant({}),
  fc.record({ drip: fc.constantFrom('10ms', '2s') }),
  fc.record({ split: fc.integer({ min: 1, max: 10 }), gap: fc.constantFrom('0s', '1s') }),
  fc.record({ repeat: fc.integer({ min: 1, max: 3 }) }),
)

const spoken = fc
  .record({ at: fc.constantFrom(...SPOKEN_STAGES), said, shape, when, early: fc.boolean() })
  .map(({ at, said: words, shape: manner, when: times, early }): RuleText => ({
    at,
    ...words,
    ...manner,
    ...times,
    ...(early ? { early } : {}),
  }))

const unspoken: fc.Arbitrary<RuleText> = fc.oneof(
  fc.record({ dns: fc.constantFrom(...DNS_FAULTS) }),
  fc.record({ connect: fc.constantFrom(...CONNECT_FAULTS) }),
  fc.constantFrom<RuleText>(
    { greylist: '5m' },
    { connections_over: 1 },
    { rate: '1/5m' },
    { quota: 1 },
    { recipients_over: 1 },
    { read_rate: 10 },
  ),
  fc.constant<RuleText>({ extensions: ['STARTTLS', 'AUTH PLAIN'] }),
)

/** Rules that can be read; not every mixture of keys makes sense. */
const rules = fc.array(fc.oneof(spoken, unspoken), { minLength: 1, maxLength: 4 }).map((list) =>
  list.flatMap((written, index): Rule[] => {
    const read = readRule(`r${index}`, written)
    return 'rule' in read ? [read.rule] : []
  }),
)

test('each session ends, with a reply or without', async () => {
  await fc.assert(
    fc.asyncProperty(rules, async (list) => {
      const world = openRemote()
      world.far.addRules(...list)
      const mail = { to: ['ann@them.example', 'bob@them.example'] }
      const outcomes = await world.deliver([mail, { to: ['ann@them.example'] }], [0, HOUR])
      expect(outcomes.flat().filter((met) => typeof met === 'string' && met !== '')).toHaveLength(4)
      const count = (event: string) => world.events.filter((one) => one.event === event).length
      expect(count('closed')).toBe(count('connected'))
      // Kept are only messages that came in whole.
      expect(world.mails.length).toBeLessThanOrEqual(count('message'))
    }),
    { numRuns: 300 },
  )
})

test('the same seed gives the same events', async () => {
  await fc.assert(
    fc.asyncProperty(rules, fc.integer(), async (list, seed) => {
      const run = async () => {
        const world = openRemote('', { seed })
        world.far.addRules(...list)
        await world.deliver([{ to: ['ann@them.example'] }, { to: ['bob@them.example'] }], [0, HOUR])
        return world.events
      }
      expect(await run()).toEqual(await run())
    }),
    { numRuns: 50 },
  )
})
