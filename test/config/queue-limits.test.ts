/** Parameters of the limits of the queue: percentages, exceptions, and combinations that are refused. */
import { describe, expect, test } from 'vitest'
import { ConfigError } from '../../src/config/values/problem.ts'
import { loadConfig } from '../../src/config/load.ts'
import { Clients, queueLimitTerms } from '../../src/config/values/limit-terms.ts'

const NO_FILES = { folder: '/nonexistent/deferd.toml', system: '/nonexistent/system.toml' }

const load = (overrides: readonly string[]) => loadConfig({ env: {}, overrides, uid: 1, calledAs: 'deferd', defaultFiles: NO_FILES })

function problems(...overrides: readonly string[]): readonly string[] {
  try {
    load(overrides)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    expect(error.exitCode).toBe(78)
    return error.message.split('\n')
  }
  return []
}

test('no limit is set by default; a percentage is a part of the limit of the queue', () => {
  expect(queueLimitTerms(load([]).config)).toBeNull()
  const given = [
    'queue_message_limit=1000',
    'queue_size_limit=10M',
    'queue_share_message_limit=20%',
    'queue_share_size_limit=1M',
    'queue_limit_resume=90 %',
  ]
  expect(queueLimitTerms(load(given).config)).toEqual({
    queue: { messages: 1_000, bytes: 10_485_760 },
    share: { messages: 200, bytes: 1_048_576 },
    resume: 0.9,
  })
})

test('all impossible combinations are refused at once, each with what to do', () => {
  const found = problems(
    'queue_message_limit=100',
    'queue_share_message_limit=101',
    'queue_share_size_limit=20%',
    'queue_limit_resume=100%',
    'queue_limit_exceptions=10.0.0.0/33, alerts',
    'share_key=login, tenant',
  )
  expect(found).toHaveLength(5)
  for (const text of [
    'queue_share_message_limit: 101 is more than queue_message_limit, which is 100',
    'queue_share_size_limit: 20% is a part of queue_size_limit, which is not set: set it, or write an amount',
    'queue_limit_resume: expected a percentage above 0% and below 100%, such as "95%", got "100%"',
    'queue_limit_exceptions: expected a network such as 192.0.2.0/24 or [2001:db8::]/32, got 10.0.0.0/33',
    'share_key: expected one or more of login, token, sender_domain, client',
  ])
    expect(found.join('\n')).toContain(text)
})

test.each([
  ['queue_limit_resume=0%', 'queue_limit_resume'],
  ['queue_limit_resume=95', 'queue_limit_resume'],
  ['queue_share_message_limit=0%', 'queue_share_message_limit'],
  ['queue_share_message_limit=101%', 'queue_share_message_limit'],
  ['queue_share_message_limit=0.1%', 'queue_share_message_limit'],
  ['queue_message_limit=-1', 'queue_message_limit'],
  ['queue_share_size_limit=much', 'queue_share_size_limit'],
])('%s is refused', (given, name) => {
  const found = problems(...(given.startsWith('queue_message_limit') ? [] : ['queue_message_limit=100']), given)
  expect(found).toHaveLength(1)
  expect(found[0]).toContain(name)
})

describe('exceptions', () => {
  const exceptions = new Clients(
    ['10.0.0.0/8', '[2001:db8::]/32', 'alerts', 'app@us.example', 'token:monitoring', 'fe80::1', '192.0.2.7'],
    'queue_limit_exceptions',
  )

  test.each([
    ['10.1.2.3', undefined, true],
    ['192.0.2.7', undefined, true],
    ['192.0.2.8', 'ann', false],
    ['192.0.2.8', 'alerts', true],
    ['192.0.2.8', 'app@us.example', true],
    ['2001:db8::7', undefined, true],
    ['fe80::1', undefined, true],
    [null, 'token:monitoring', true],
    [null, undefined, false],
  ])('%s %s: %s', (address, user, expected) => {
    expect(exceptions.has({ address, user })).toBe(expected)
  })
})
