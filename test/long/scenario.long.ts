/** The scenario of docs/choosing-retry-settings.md in full size: 20,000 messages, an outage of three hours, a limit of five messages a second. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { span } from '../../src/presentation/text.ts'
import { SECOND } from '../../src/system/clock.ts'
import { simulate } from '../support/simulate-command.ts'

const page = readFileSync(new URL('../../docs/choosing-retry-settings.md', import.meta.url), 'utf8')
const path = new URL('../../examples/rate-limited-provider.toml', import.meta.url).pathname

interface Result {
  readonly destinations: readonly { readonly failed: number; readonly last_delivery: number }[]
}

async function provider(...args: readonly string[]): Promise<Result['destinations'][number]> {
  const { out } = await simulate(['run', path, '--json', ...args])
  const [first] = (JSON.parse(out) as Result).destinations
  if (first === undefined) throw new Error(`no destination in ${out}`)
  return first
}

test('everything is delivered at the limit, and other destinations are not delayed', { timeout: 300_000 }, async () => {
  const { out } = await simulate(['run', path, '--json'])
  expect(JSON.parse(out)).toMatchObject({
    delivered: 20_600,
    queued: 0,
    destinations: [
      { destination: 'provider.example', delivered: 20_000, deaths: 1 },
      { destination: 'customer.example', failed: 0, wait: { p95: 0.5, max: 0.5 } },
      { destination: 'partner.example', failed: 0, wait: { p95: 0.5, max: 0.5 } },
    ],
  })
  expect((await simulate(['run', path, '--json'])).out).toBe(out)
})

test('the command of the guide prints what the guide shows', { timeout: 300_000 }, async () => {
  const shown = /^DESTINATION +MAIL DELIVERED[\s\S]*?(?=^```)/m.exec(page)?.[0] ?? 'nothing'
  expect((await simulate(['run', path])).out).toContain(shown)
})

describe('the settings of the guide have its figures', () => {
  const rows = [...page.matchAll(/^\| (as it is|`[a-z_]+=\w+`) +\| ([\d hmin]+?) +\| ([\d,]+) +\|$/gm)]
  test('the guide has five', () => expect(rows).toHaveLength(5))
  for (const [, setting = '', last, failed] of rows) {
    test(setting, { timeout: 300_000 }, async () => {
      const found = await provider(...(setting === 'as it is' ? [] : ['-o', setting.replaceAll('`', '')]))
      const shown = span(found.last_delivery * SECOND)
        .replace('h', ' h')
        .replace('m', ' min')
      expect([shown, found.failed.toLocaleString('en')]).toEqual([last, failed])
    })
  }
})
