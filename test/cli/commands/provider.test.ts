/** `deferd provider`, without a daemon. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStore } from '../../../src/store/sqlite/open-store.ts'
import { queue } from '../../conformance/mail.ts'
import { Operator } from '../../support/operator.ts'

const TABLES = `[provider.google]
mx = [".google.example"]
provider_concurrency_limit = 5
provider_message_rate_limit = 600
[provider.yahoo]
mx = [".yahoo.example"]
`

let operator: Operator
const configFile = (): string => join(operator.directory, 'deferd.toml')

beforeEach(async () => {
  operator = new Operator()
  writeFileSync(configFile(), TABLES)
  const { store, close } = await openStore(operator.directory, { threads: false, create: true })
  await store.joinProvider('far.example', 'google')
  await store.joinProvider('near.example', 'google')
  for (const n of [1, 2]) await queue(store, { to: [{ address: `ann${n}@far.example` }] })
  await queue(store, { to: [{ address: 'bob@near.example' }] })
  await close()
})
afterEach(() => operator.leave())

const says = (...argv: readonly string[]) => operator.says(...argv, '--config', configFile())
/** Output without its line breaks. */
const saysInOneLine = async (...argv: readonly string[]) => (await says(...argv)).replaceAll(/\s+/g, ' ')
const json = async (...argv: readonly string[]) =>
  (await says(...argv, '--json'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

test('lists and shows providers with the mail of their destinations', async () => {
  const open = { state: 'open', in_flight: 0, suspended_by: null, rules: [] }
  expect(await json('provider', 'list')).toMatchObject([
    {
      ...open,
      provider: 'google',
      waiting: 3,
      limit: 5,
      message_rate: 600,
      destinations: 2,
      largest_destinations: ['far.example', 'near.example'],
    },
    { ...open, provider: 'yahoo', waiting: 0, limit: null, message_rate: null, destinations: 0 },
  ])
  expect(await says('provider', 'list')).toMatch(
    /^PROVIDER +STATE +WAITING +ACTIVE +RATE +DESTINATIONS\ngoogle +open +3 +0\/5 +600\/min +2\n/,
  )
  expect(await says('provider', 'show', 'GOOGLE')).toBe(
    'google\n  state       open\n  mx          .google.example\n  waiting     3 recipients\n  in flight   0 of at most 5, at most 600 a minute\n' +
      '  known       2 destinations\n              2 at far.example\n              1 at near.example\n',
  )
})

test('suspends and resumes a provider beside its destinations', async () => {
  expect(await says('provider', 'suspend', 'google', '--for', '2h', '--reason', 'rate limited')).toMatch(
    /^google: suspended until .*: rate limited\n$/,
  )
  expect(await json('provider', 'show', 'google')).toMatchObject([
    { state: 'suspended', suspended_by: 'operator', suspend_reason: 'rate limited' },
  ])
  expect(await says('provider', 'list')).toContain('    suspended by operator, ends in 2h: rate limited\n')
  expect(await saysInOneLine('destination', 'show', 'far.example')).toContain(
    'suspended with provider google by operator, ends in 2h: rate limited ',
  )
  await says('destination', 'suspend', 'far.example', '--reason', 'own')
  expect(await saysInOneLine('destination', 'show', 'far.example')).toContain(
    'suspended by operator: own; also with provider google by operator ',
  )
  expect(await says('destination', 'resume', 'far.example')).toBe(
    'far.example: not suspended itself any more, but with provider google: deferd provider resume google\n',
  )
  expect(await says('queue', 'list', '--json')).toContain('delivery temporarily suspended: with provider google by operator: rate limited')
  expect(await says('provider', 'resume', 'google')).toBe('google: resumed\n')
  expect(await says('destination', 'show', 'far.example')).toContain('state       open\n')
  expect(await says('audit')).toMatch(/suspend provider google --for=2h --reason='rate limited'[^]*resume provider google/)
})

test('refuses unknown providers with the known ones', async () => {
  const unknown = 'deferd: there is no table [provider.gogle]: known are google, yahoo\n'
  for (const verb of ['show', 'suspend', 'resume'])
    expect(await operator.run(['provider', verb, 'gogle', '--config', configFile()])).toMatchObject({ code: 65, err: unknown })
  expect((await operator.run(['provider', 'suspend', 'google', '--for', '0s', '--config', configFile()])).code).toBe(64)
})
