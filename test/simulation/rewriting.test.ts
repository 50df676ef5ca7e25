/** Recipients that were replaced or added are accounted for like all others. test/long simulates more seeds. */
import { expect, test } from 'vitest'
import { generatedBy } from './generator.ts'
import { rewritten } from './rewriting.ts'
import { run } from './run.ts'
import { simulate } from './simulate.ts'

test('seeds 1 to 80 with aliases, copies and redirected mail: no invariant is violated', { timeout: 120_000 }, async () => {
  const { events } = await simulate(1, 80, 'sparse', rewritten)
  expect(events).toBeGreaterThan(10_000)
})

test('the scenarios have mail to aliases, copies and redirected mail', async () => {
  const scenario = rewritten(generatedBy(3))
  const { history } = await run(scenario)
  const accepted = history.trace.flatMap(({ event }) =>
    'method' in event && event.method === 'enqueue' ? [(event as unknown as { recipients: { address: string }[] }).recipients] : [],
  )
  const addresses = new Set(accepted.flat().map(({ address }) => address))
  expect(addresses).toContain(scenario.rewriting?.copyTo)
  expect([...addresses].filter((address) => /^(?:list|desk|old)@/.test(address))).toEqual([])
  expect(accepted.some((recipients) => recipients.length === 1 && recipients[0]?.address.startsWith('eve@'))).toBe(true)
})
