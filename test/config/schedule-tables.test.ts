import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { configFrom, ConfigError, loadConfig } from '../../src/config/load.ts'

type Members = Readonly<Record<string, string | number | readonly string[]>>

const read = (schedule: Readonly<Record<string, Members>>, more: Readonly<Record<string, unknown>> = {}) =>
  configFrom({ schedule, ...more }, 'relay.example').config.schedule

const problemsOf = (load: () => unknown): readonly string[] => {
  try {
    load()
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(({ where, text }) => `${where}: ${text}`)
    throw error
  }
}

const BACKUP: Members = { at: '30 2 * * *', do: 'backup', to: '/var/backups/deferd-{date}.db', keep: 7 }

describe('a [schedule.NAME] table', () => {
  test('has its work and the times of its zone', () => {
    const table = read({ nightly: { ...BACKUP, zone: 'Europe/Berlin' } }).get('nightly')
    expect(table).toMatchObject({ name: 'nightly', zone: 'Europe/Berlin', action: { do: 'backup', to: BACKUP['to'], keep: 7 } })
    expect(table?.times.next(Date.parse('2026-07-01T12:00:00Z'))).toBe(Date.parse('2026-07-02T00:30:00Z'))
  })

  test('may name each work', () => {
    const at = '0 1 * * *'
    const tables = read({
      a: { at, do: 'report', notify: 'ops@example.com, boss@example.com' },
      b: { at, do: 'suspend', destinations: ['*.example.net'], for: '2h' },
      c: { at, do: 'resume', destinations: '*' },
      d: { at: '15 0 1 * * *', do: 'flush', destinations: 'slow.example' },
      e: { at: '@daily', do: 'check domain', domains: ['example.com', 'bücher.example'] },
    })
    expect([...tables.values()].map(({ action }) => action)).toEqual([
      { do: 'report', notify: ['ops@example.com', 'boss@example.com'] },
      { do: 'suspend', destinations: ['*.example.net'], duration: 7_200_000 },
      { do: 'resume', destinations: ['*'] },
      { do: 'flush', destinations: ['slow.example'] },
      { do: 'check domain', domains: ['example.com', 'bücher.example'] },
    ])
  })

  test.each([
    ['an unknown member', { ...BACKUP, colour: 'red' }, 'unknown member colour; a table has at, zone, do'],
    ['no times', { do: 'flush', destinations: '*' }, 'at is missing; write a cron expression'],
    ['no work', { at: '0 1 * * *' }, 'do is missing; write one of "backup", "report"'],
    ['an unknown work', { at: '0 1 * * *', do: 'dance' }, 'do: "dance" is unknown; write one of'],
    ['a wrong field', { ...BACKUP, at: '61 2 * * *' }, 'at: "61" is no minute; write 0 to 59, a list (1,15)'],
    [
      'too few fields',
      { ...BACKUP, at: '2 * *' },
      'at: "2 * *" has 3 fields; write 5 fields (minute, hour, day of month, month, day of week), or 6',
    ],
    ['an unknown name of times', { ...BACKUP, at: '@nightly' }, 'at: "@nightly" is unknown; write @hourly, @daily'],
    ['other characters', { ...BACKUP, at: '0 2 * * !' }, 'at: "0 2 * * !" has characters of no cron expression; write digits, names'],
    ['a weekday of no month', { ...BACKUP, at: '0 2 * * 8' }, 'at: "8" is no day of week; write 0 to 7'],
    [
      'a day that no month has',
      { ...BACKUP, at: '0 2 30 2 *' },
      'at: the day 30 is in no month of "0 2 30 2 *"; write a day that one of its months has',
    ],
    [
      'days that never fall together',
      { ...BACKUP, at: '0 2 1-7 * 1#4' },
      'at: "0 2 1-7 * 1#4" matches on no day: both the day of month and the day of week',
    ],
    ['an unknown zone', { ...BACKUP, zone: 'Europe/Nowhere' }, 'zone: "Europe/Nowhere" is not a time zone'],
    ['a number for times', { ...BACKUP, at: 5 }, 'at: expected a text'],
    ['keep = 0', { ...BACKUP, keep: 0 }, 'keep: expected a whole number of at least 1, got 0'],
    ['keep for files of one name', { ...BACKUP, to: '/b.db' }, 'keep: all files would have the name of to'],
    ['a relative path', { ...BACKUP, to: 'b-{date}.db' }, 'to: expected the absolute path of a file'],
    [
      'an unknown placeholder',
      { ...BACKUP, to: '/b-{day}.db' },
      'to: expected the absolute path of a file, in which only {date} and {time}',
    ],
    ['no file', { at: '0 1 * * *', do: 'backup' }, 'to is missing; a table with do = "backup" needs it'],
    ['a member of another work', { ...BACKUP, for: '2h' }, 'for has no meaning with do = "backup": remove it'],
    ['no address', { at: '0 1 * * *', do: 'report', notify: 'ops' }, 'notify: expected one or more addresses'],
    ['an empty list', { at: '0 1 * * *', do: 'flush', destinations: [] }, 'destinations: expected one or more names'],
    ['for = 0', { at: '0 1 * * *', do: 'suspend', destinations: '*', for: '0' }, 'for: expected a time longer than 0'],
    [
      'an address in place of a domain',
      { at: '0 1 * * *', do: 'check domain', domains: 'a@b.example' },
      'domains: expected one or more domains',
    ],
  ] as const)('is refused with %s', (_what, table, text) => {
    expect(problemsOf(() => read({ x: table }))).toEqual([expect.stringContaining(`schedule."x": ${text}`)])
  })

  test('is refused with two wrong fields, each of which is named', () => {
    expect(problemsOf(() => read({ x: { ...BACKUP, at: '0 24 * 13 *' } }))).toEqual([
      expect.stringContaining('at: "24" is no hour; write 0 to 23'),
      expect.stringContaining('at: "13" is no month; write 1 to 12 or jan to dec'),
    ])
  })

  test('is refused with a name that is no word', () => {
    expect(problemsOf(() => read({ 'My Backup': BACKUP }))).toEqual([expect.stringContaining('expected a name of lower-case letters')])
  })

  test('of a backup is refused with a queue in PostgreSQL, and beside one of the same file', () => {
    const one = problemsOf(() => read({ a: BACKUP }, { queue_database: 'postgresql://db/queue' }))
    expect(one).toEqual([expect.stringContaining('do: the queue is in PostgreSQL (queue_database), which pg_dump')])
    expect(problemsOf(() => read({ a: BACKUP, b: BACKUP }))).toEqual([
      'schedule.b.to: schedule."b": to: [schedule.a] writes the same file; name another one',
    ])
  })
})

test('all mistakes are reported at once, each with its line', () => {
  const folder = mkdtempSync(join(tmpdir(), 'schedules-'))
  const file = join(folder, 'deferd.toml')
  const lines = [
    '[schedule.a]',
    'at = "61 * * * *"',
    'zone = "Mars"',
    'do = "backup"',
    'keep = 0',
    '[schedule.b]',
    'at = "0 1 * * *"',
    'do = "report"',
  ]
  writeFileSync(file, lines.join('\n'))
  const load = () => loadConfig({ file, env: {}, overrides: [], uid: 1_000, calledAs: 'deferd' })
  expect(problemsOf(load).map((text) => text.slice(file.length + 1))).toEqual([
    expect.stringContaining('1: schedule."a": to is missing'),
    expect.stringContaining('2: schedule."a": at: "61" is no minute'),
    expect.stringContaining('3: schedule."a": zone: "Mars" is not a time zone'),
    expect.stringContaining('5: schedule."a": keep: expected a whole number of at least 1'),
    expect.stringContaining('6: schedule."b": notify is missing'),
  ])
  rmSync(folder, { recursive: true })
})
