import { describe, expect, test } from 'vitest'
import { configFrom, loadConfig } from '../../src/config/load.ts'
import { DestinationPolicies } from '../../src/config/destination-policies.ts'
import { ProviderDirectory } from '../../src/config/provider-directory.ts'
import { providerOfHosts } from '../../src/config/values/tables/provider-table.ts'
import { ConfigError } from '../../src/config/values/problem.ts'
import { HOUR, MINUTE } from '../../src/system/clock.ts'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tmpdir } from 'node:os'

const read = (provider: object, more: object = {}) => configFrom({ ...more, provider }, 'relay.example')

function problemsOf(provider: object): string {
  try {
    read(provider)
    return ''
  } catch (error) {
    return error instanceof ConfigError ? error.message : String(error)
  }
}

test('a table with all keys', () => {
  const table = {
    mx: ['.Google.com.', 'mx.exact.example'],
    provider_concurrency_limit: '5',
    provider_message_rate_limit: 100,
    minimal_backoff_time: '2m',
    rule: [
      { reply: 'too many', action: 'rate 10/min', for: '30m' },
      { name: 'tss', reply: String.raw`\[TSS0[45]\]`, after: '2 in 1h', action: 'suspend', for: '2h' },
      { reply: 'x', action: 'concurrency 1', for: 60 },
    ],
  }
  const google = read({ google: table }).config.provider.get('google')
  expect(google).toMatchObject({
    mx: ['.google.com', 'mx.exact.example'],
    concurrencyLimit: 5,
    messageRateLimit: 100,
    settings: { minimal_backoff_time: 2 * MINUTE },
    rules: [
      { name: '1', count: 1, within: HOUR, action: { kind: 'rate', perMinute: 10 }, duration: 30 * MINUTE },
      { name: 'tss', count: 2, within: HOUR, action: { kind: 'suspend' }, duration: 2 * HOUR },
      { name: '3', action: { kind: 'concurrency', limit: 1 }, duration: MINUTE },
    ],
  })
  expect(google?.rules[1]?.pattern.match('421 [tss04] later', false)).not.toBeNull()
})

test('the global limits apply to tables without own ones', () => {
  const { config } = read(
    { a: { mx: '.a.example' }, b: { mx: '.b.example', provider_concurrency_limit: 0 } },
    { provider_concurrency_limit: 7 },
  )
  expect([...config.provider.values()].map(({ concurrencyLimit }) => concurrencyLimit)).toEqual([7, 0])
})

const RULE = { reply: 'x', action: 'suspend', for: '1h' }

test.each<readonly [string, object, string]>([
  ['no mx', { google: { provider_concurrency_limit: 5 } }, 'provider.google.provider_concurrency_limit: provider."google": mx is missing'],
  ['a pattern as mx', { google: { mx: ['*.google.com'] } }, 'mx: expected a list of host names or suffixes such as ".google.com"'],
  ['a name in capitals', { Google: { mx: ['.google.com'] } }, 'expected a name of lower-case letters'],
  [
    'an unknown key',
    { a: { mx: '.a', provider_concurency_limit: 5 } },
    'unknown parameter provider_concurency_limit; did you mean provider_concurrency_limit?',
  ],
  ['a parameter of the relay', { a: { mx: '.a', myhostname: 'x' } }, 'myhostname is a parameter of the whole relay, not of [provider."a"]'],
  ['a malformed limit', { a: { mx: '.a', provider_concurrency_limit: 'many' } }, 'provider."a": provider_concurrency_limit: expected'],
  [
    'times that contradict',
    { a: { mx: '.a', minimal_backoff_time: '2h', maximal_backoff_time: '1h' } },
    'provider."a": minimal_backoff_time is above',
  ],
  ['one rule that is no list', { a: { mx: '.a', rule: RULE } }, 'rule: expected tables such as [[provider.NAME.rule]]'],
  ['a rule without an end', { a: { mx: '.a', rule: [RULE, { reply: 'x', action: 'suspend' }] } }, 'provider."a": rule 2: for is missing'],
  ['a rule that ends at once', { a: { mx: '.a', rule: [{ ...RULE, for: 0 }] } }, 'rule 1: for: expected a time longer than 0'],
  [
    'an unknown action',
    { a: { mx: '.a', rule: [{ ...RULE, action: 'rate 10' }] } },
    'action: expected "suspend", "rate 10/min" or "concurrency 1", got "rate 10"',
  ],
  ['a broken pattern', { a: { mx: '.a', rule: [{ ...RULE, reply: '(' }] } }, 'rule 1: reply: '],
  ['a pattern that matches all', { a: { mx: '.a', rule: [{ ...RULE, reply: '' }] } }, 'reply: expected a pattern, got ""'],
  ['a count without a time', { a: { mx: '.a', rule: [{ ...RULE, after: '2' }] } }, 'after: expected a number and a time such as "2 in 1h"'],
  [
    'an unknown key of a rule',
    { a: { mx: '.a', rule: [{ ...RULE, until: '1h' }] } },
    'unknown key until; a rule has reply, after, action, for, name',
  ],
  ['two rules of one name', { a: { mx: '.a', rule: [{ ...RULE, name: '2' }, RULE] } }, 'rule 2: another rule has the name 2'],
])('%s is refused', (_, provider, problem) => {
  expect(problemsOf(provider)).toContain(problem)
})

test('problems of rules have their lines', () => {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-provider-'))
  try {
    const file = join(folder, 'deferd.toml')
    const rules = ['reply = "a"', 'reply = "("'].flatMap((reply) => ['[[provider.a.rule]]', reply, 'action = "suspend"', 'for = "1h"'])
    writeFileSync(file, ['[provider.a]', 'mx = [".a.example"]', ...rules, ''].join('\n'))
    expect(() => loadConfig({ file, env: {}, overrides: [], uid: 0, calledAs: 'deferd' })).toThrow(
      `${file}:8: provider."a": rule 2: reply: `,
    )
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('the tables of examples/providers.toml are valid', () => {
  const file = join(import.meta.dirname, '../../examples/providers.toml')
  const { config } = loadConfig({ file, env: {}, overrides: [], uid: 0, calledAs: 'deferd', hostname: 'relay.example' })
  expect(config.provider.size).toBeGreaterThan(8)
  expect(providerOfHosts(config.provider, [{ name: 'example-com.mail.protection.outlook.com', preference: 10 }])).toBe('office365')
  expect(providerOfHosts(config.provider, [{ name: 'hotmail-com.olc.protection.outlook.com', preference: 10 }])).toBe('outlook')
  expect(config.provider.get('yahoo')?.rules[0]?.pattern.match('421 4.7.0 [TSS04] Messages deferred', false)).not.toBeNull()
})

describe('the provider of hosts', () => {
  const { provider } = read({
    google: { mx: ['.google.com'] },
    special: { mx: ['.special.google.com'] },
    exact: { mx: ['mx.one.example'] },
  }).config
  const of = (...hosts: readonly (readonly [string, number])[]) =>
    providerOfHosts(
      provider,
      hosts.map(([name, preference]) => ({ name, preference })),
    )

  test.each<readonly [string, string | null]>([
    ['aspmx.l.google.com', 'google'],
    ['google.com', null],
    ['notgoogle.com', null],
    ['mx.special.google.com', 'special'],
    ['mx.one.example', 'exact'],
    ['b.mx.one.example', null],
  ])('%s: %s', (name, expected) => {
    expect(of([name, 10])).toBe(expected)
  })

  test('only hosts of the best preference count, in any order', () => {
    expect(of(['backup.example', 20], ['aspmx.google.com', 10])).toBe('google')
    expect(of(['aspmx.google.com', 20], ['own.example', 10])).toBeNull()
    expect(of(['mx.special.google.com', 10], ['aspmx.google.com', 10])).toBe('google')
    expect(of(['aspmx.google.com', 10], ['mx.special.google.com', 10])).toBe('google')
    expect(of()).toBeNull()
  })
})

test('settings: destination before provider before relay; a provider without a table has none', () => {
  const { config } = read(
    { big: { mx: '.big.example', minimal_backoff_time: '2m', maximal_backoff_time: '20m' } },
    { destination: { 'own.example': { minimal_backoff_time: '1m' } } },
  )
  const directory = new ProviderDirectory()
  const policies = new DestinationPolicies(config, directory)
  const timesOf = (name: string) => {
    const { settings, provider } = policies.for(name)
    return [provider, settings.minimal_backoff_time / MINUTE, Math.round(settings.maximal_backoff_time / MINUTE)]
  }
  expect(timesOf('own.example')).toEqual([null, 1, 67])
  for (const name of ['own.example', 'far.example']) directory.set(name, 'big')
  directory.set('gone.example', 'removed')
  expect(timesOf('own.example')).toEqual(['big', 1, 20])
  expect(timesOf('far.example')).toEqual(['big', 2, 20])
  expect(timesOf('gone.example')).toEqual([null, 5, 67])
  directory.set('far.example', null)
  expect(timesOf('far.example')).toEqual([null, 5, 67])
})
