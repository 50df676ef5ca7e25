/** A scenario is read completely, and every mistake is reported with file, line and the valid values. */
import { describe, expect, test } from 'vitest'
import { ConfigError } from '../../../src/config/values/problem.ts'
import { HOUR, MINUTE, SECOND } from '../../../src/system/clock.ts'
import { readScenario } from '../../../src/simulator/scenario/scenario-file.ts'

const MAIL = '[mail]\nmessages = 10\nto = "far.example"\n'

function complaints(text: string, overrides: readonly string[] = []): readonly string[] {
  try {
    readScenario(text, 's.toml', overrides)
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
  return []
}

test('one stream of mail in [mail]', () => {
  const { streams, duration } = readScenario('duration = "2h"\n[mail]\nmessages = 60\nto = "a.example, b.example"\nover = "1h"\n', 's.toml')
  expect(duration).toBe(2 * HOUR)
  expect(streams).toEqual([
    {
      name: 'mail',
      messages: 60,
      to: ['a.example', 'b.example'],
      recipients: 1,
      size: 2048,
      sender: 'app@sender.example',
      starts: 0,
      gap: MINUTE,
      not_before: 0,
      expires: 0,
      maximum_attempts: 0,
      class: '',
    },
  ])
})

test('several streams in tables; without a time all mail arrives at once', () => {
  const { streams, duration } = readScenario(
    `[mail.letter]\nmessages = 5\nto = ["a.example"]\nrecipients = 3\nsize = "10k"\n
     [mail.alarm]\nmessages = 7\nto = "b.example"\nrate = "2/1s"\nstarts = "1m"\nsender = ""\n`,
    's.toml',
  )
  expect(duration).toBeNull()
  expect(streams).toMatchObject([
    { name: 'letter', recipients: 3, size: 10_240, starts: 0, gap: 0 },
    { name: 'alarm', sender: '', starts: MINUTE, gap: SECOND / 2 },
  ])
})

test('[config] is that of a deferd.toml, and -o overrides it', () => {
  const text = `${MAIL}[config]\nminimal_backoff_time = "60s"\n[config.destination."far.example"]\nretry_backoff = "fixed"\n`
  const { loaded } = readScenario(text, 's.toml', ['minimal_backoff_time=90s'])
  expect(loaded.config.minimal_backoff_time).toBe(90 * SECOND)
  expect(loaded.config.destination.get('far.example')).toMatchObject({ retry_backoff: 'fixed' })
})

describe('round-trip time', () => {
  const delayOf = (text: string, name: string) => {
    const rule = readScenario(text, 's.toml').script.rules.find((one) => one.name === name)
    return rule === undefined ? undefined : 'action' in rule.fault ? rule.fault.action.delay : rule.fault.delay
  }
  const refusal = `${MAIL}[rule.no]\nat = "mail"\nreply = "450 4.0.0 no"\n`

  test('is 100 ms by default', () => {
    expect(delayOf(refusal, 'no')).toBe(100)
    expect(delayOf(refusal, 'latency')).toBe(100)
  })
  test('is set for the scenario', () => expect(delayOf(`latency = "2s"\n${refusal}`, 'no')).toBe(2 * SECOND))
  test('is set in a rule', () => expect(delayOf(`${refusal}delay = "1s"\n`, 'no')).toBe(SECOND))
  test('can be 0', () => {
    expect(delayOf(`latency = 0\n${refusal}`, 'no')).toBe(0)
    expect(delayOf(`latency = 0\n${refusal}`, 'latency')).toBeUndefined()
  })
})

describe('a scenario with a mistake is refused with file, line and what would be right', () => {
  test.each([
    ['duration = "1h"\n', 's.toml:1: the scenario has no mail: add a table such as [mail] with messages = 1000'],
    ['[mail]\nto = "a.example"', 's.toml:1: messages is missing, such as messages = 1000'],
    ['[mail]\nmessages = 1', 's.toml:1: to is missing, such as to = "provider.example"'],
    ['[mail]\nmessages = 0\nto = "a.example"', 's.toml:2: messages: expected a whole number from 1 to 1000000, got 0'],
    ['[mail]\nmessages = 1\nto = "ann@a.example"', 's.toml:3: to: expected domains such as "provider.example"'],
    [`${MAIL}mesages = 1`, 's.toml:4: unknown key mesages; did you mean messages?'],
    [`${MAIL}rate = "fast"`, 's.toml:4: rate: expected a rate such as "10/1m", got "fast"'],
    [`${MAIL}over = "1h"\nrate = "1/1s"`, 's.toml:5: rate cannot be combined with over'],
    ['[mail.a]\nmessages = 1\nto = "a.example"\nsize = "big"', 's.toml:4: size: expected a size in bytes, got "big"'],
    [`latency = "slow"\n${MAIL}`, 's.toml:1: latency: expected a time such as'],
    [`${MAIL}[rules.x]\nconnect = "refused"`, 's.toml:4: unknown key rules; did you mean rule?'],
    [`${MAIL}[rule.x]\nconect = "refused"`, 's.toml:5: rule x: unknown key conect; did you mean connect?'],
    [`${MAIL}[config]\nminimal_backof_time = "1s"`, 's.toml:5: unknown parameter minimal_backof_time; did you mean minimal_backoff_time?'],
    [`${MAIL}[config]\nminimal_backoff_time = "2h"`, 's.toml:5: minimal_backoff_time is above maximal_backoff_time'],
    [`${MAIL}[config.destination."x"]\nretry_backoff = "dubbling"`, 's.toml:5: destination."x": retry_backoff: unknown policy "dubbling"'],
    [`${MAIL}size = "11M"`, 's.toml:4: size: 11534336 bytes are more than message_size_limit allows (10240000)'],
    ['[mail]\nmessages = 1000000\nto = "a.example"', 's.toml:1: 2048000000 bytes of mail are above the limit of a simulation'],
    ['config = 1\n' + MAIL, 's.toml:1: config must be a table: [config]'],
    ['[mail', 's.toml:1: '],
  ])('%j', (text, complaint) => {
    const [first, ...more] = complaints(text)
    expect(first?.slice(0, complaint.length)).toBe(complaint)
    expect(more).toEqual([])
  })

  test('-o has no line', () => expect(complaints(MAIL, ['nonsense=1'])).toEqual(['-o: unknown parameter nonsense']))

  test('all mistakes at once', () => {
    expect(complaints('[mail]\nmessages = -1\n[rule.x]\nat = "rcpt"\n[config]\nfoo_bar_baz = 1\n').map((line) => line.slice(0, 8))).toEqual(
      ['s.toml:2', 's.toml:1', 's.toml:3', 's.toml:6'],
    )
  })
})
