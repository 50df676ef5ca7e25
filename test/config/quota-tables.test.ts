import { describe, expect, test } from 'vitest'
import { configFrom, ConfigError } from '../../src/config/load.ts'
import { DAY, HOUR, MINUTE } from '../../src/system/clock.ts'

const configOf = (values: Readonly<Record<string, unknown>>) => configFrom(values, 'relay.example').config

const problemsOf = (values: Readonly<Record<string, unknown>>): readonly string[] => {
  try {
    configOf(values)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(({ where, text }) => `${where}: ${text}`)
    throw error
  }
}

const APP = { keys: 'login', limits: ['1000/1h', '20000 recipients/1d'] }

describe('a [quota.NAME] table', () => {
  test('may have a header field as its key, and does not hold mail by it', () => {
    const tenant = { keys: 'header:X-Tenant', limits: ['9/1h'] }
    expect(configOf({ quota: { tenant } }).quota.get('tenant')?.key).toBe('header:X-Tenant')
    expect(problemsOf({ quota: { tenant: { ...tenant, action: 'hold' } } })).toEqual([
      expect.stringContaining('mail is not held by a header field'),
    ])
    for (const keys of ['header:', 'header:X Tenant', 'header:X:Tenant', 'tenant'])
      expect(problemsOf({ quota: { tenant: { ...tenant, keys } } })).toEqual([expect.stringContaining('or header:NAME')])
  })

  test('may count the mail of classes that have tables', () => {
    const classes = { class: { bulk: { weight: 1 } }, default_class: 'bulk' }
    expect(configOf({ ...classes, quota: { app: { ...APP, classes: ['bulk'] } } }).quota.get('app')?.classes).toEqual(['bulk'])
    expect(problemsOf({ ...classes, quota: { app: { ...APP, classes: ['slow'] } } })).toEqual([
      expect.stringContaining('quota."app": classes: there is no table [class.slow]; add it, or name another class'),
    ])
    expect(problemsOf({ ...classes, quota: { app: { ...APP, classes: [] } } })).toEqual([
      expect.stringContaining('one or more names of classes'),
    ])
  })

  test('has its key, limits and action', () => {
    const exceptions = { 'Big@example.com': ['5000/1h'], root: 'none' }
    const table = configOf({ quota: { app: { ...APP, match: '*@example.com', action: 'hold', hold_limit: '2h', exceptions } } }).quota.get(
      'app',
    )
    expect(table).toEqual({
      name: 'app',
      key: 'login',
      match: ['*@example.com'],
      classes: [],
      limits: [
        { text: '1000/1h', measure: 'messages', most: 1_000, span: HOUR },
        { text: '20000 recipients/1d', measure: 'recipients', most: 20_000, span: DAY },
      ],
      action: 'hold',
      holdLimit: 2 * HOUR,
      exceptions: new Map([
        ['big@example.com', [{ text: '5000/1h', measure: 'messages', most: 5_000, span: HOUR }]],
        ['root', []],
      ]),
    })
  })

  test('refuses mail of all keys by default', () => {
    const table = configOf({ quota: { app: { keys: 'sender', limits: '5 messages / 1m' } } }).quota.get('app')
    expect(table).toMatchObject({ match: [], action: 'refuse', limits: [{ measure: 'messages', most: 5, span: MINUTE }] })
  })

  test.each([
    ['an unknown member', { ...APP, colour: 'red' }, 'unknown member colour; a table has keys, limits'],
    ['no key', { limits: APP.limits }, 'keys is missing; write one of login, token'],
    ['no limits', { keys: 'login' }, 'limits is missing; write a list such as ["1000/1h"'],
    [
      'an unknown key',
      { ...APP, keys: 'recipient' },
      'keys: expected one of login, token, sender_domain, client, sender, or header:NAME, got "recipient"',
    ],
    ['a limit of 0', { ...APP, limits: ['0/1h'] }, 'limits: expected one or more limits'],
    ['a limit of a second', { ...APP, limits: ['5/1s'] }, 'limits: expected one or more limits'],
    ['a limit of two months', { ...APP, limits: ['5/60d'] }, 'limits: expected one or more limits'],
    ['a limit twice', { ...APP, limits: ['5/1h', '6 messages/60m'] }, 'each measure and time once'],
    ['an unknown action', { ...APP, action: 'drop' }, 'action: expected one of refuse, hold'],
    ['a hold limit that has no effect', { ...APP, hold_limit: '1d' }, 'hold_limit has no meaning without action = "hold": remove it'],
    ['a hold limit of 0', { ...APP, action: 'hold', hold_limit: '0' }, 'hold_limit: expected a time from 1m to 31d'],
    ['exceptions without limits', { ...APP, exceptions: { root: 'all' } }, 'exceptions: "root": expected one or more limits'],
    ['exceptions that are no table', { ...APP, exceptions: 'root' }, 'exceptions: expected a table of keys and limits'],
  ])('with %s is refused', (_, table, text) => {
    const problems = problemsOf({ quota: { app: table } })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toContain(text)
    expect(problems[0]).toMatch(/^quota\.app(?:\.\w+)?: quota\."app": /)
  })

  test('reports all mistakes at once', () => {
    expect(problemsOf({ quota: { 'My App': { keys: 'login', limits: ['x'], colour: 1 }, b: {} } })).toHaveLength(5)
  })
})

test('the parameters of an hour are quotas, whose names no table has', () => {
  const { quota } = configOf({ smtpd_user_hourly_message_limit: 5, smtpd_sender_hourly_message_limit: '7' })
  expect([...quota.values()].map(({ name, key, limits, action }) => [name, key, limits[0]?.text, action])).toEqual([
    ['smtpd_user_hourly_message_limit', 'login', '5/1h', 'refuse'],
    ['smtpd_sender_hourly_message_limit', 'sender', '7/1h', 'refuse'],
  ])
  expect(problemsOf({ quota: { smtpd_user_hourly_message_limit: APP } })).toEqual([
    'quota.smtpd_user_hourly_message_limit: quota.smtpd_user_hourly_message_limit: the parameter smtpd_user_hourly_message_limit makes the quota of this name; give the table another name',
  ])
  expect(configOf({}).quota.size).toBe(0)
})
