/** The plans of retry policies that an operator asks for: their number of attempts is limited. */
import { expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { retryPlans } from '../../src/queries/retry-plans.ts'

const { config } = configFrom({ minimal_backoff_time: '20s', maximal_backoff_time: '2m', maximal_queue_lifetime: '2d' }, 'relay.example')

test('settings with short waits at the beginning have a plan: the attempts are counted, not the shortest waits of a lifetime', () => {
  const [plan] = retryPlans({}, config).plans
  expect(plan?.tries.lifetime).toBeGreaterThan(1_400)
})

test('more than 2,000 attempts are refused, with what to do; a limit of attempts ends them before', () => {
  const refused =
    'the policy fixed makes more than 2,000 attempts in the lifetime, too many for a plan: lengthen its waits, or shorten maximal_queue_lifetime'
  for (const attempts of [0, 2_001, 900_000])
    expect(() => retryPlans({ policies: ['fixed'], maximal_delivery_attempts: attempts }, config)).toThrow(refused)
  expect(retryPlans({ policies: ['fixed'], maximal_delivery_attempts: 2_000 }, config).plans[0]?.tries.lifetime).toBe(2_000)
})
