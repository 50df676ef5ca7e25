/** `deferd simulate`, run in process: the JSON has the documented members, and each refusal is a sentence. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { type Run, simulate } from '../../support/simulate-command.ts'

const folder = mkdtempSync(join(tmpdir(), 'deferd-simulate-'))
afterAll(() => rmSync(folder, { recursive: true }))
const file = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const lines = ({ out }: Run): readonly Record<string, unknown>[] =>
  out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

test('a page that cannot be created ends with 73, one that cannot be written with 74', async () => {
  const absent = join(folder, 'absent/page.html')
  expect(await simulate(['schedule', '--html', absent])).toMatchObject({
    exitCode: 73,
    err: expect.stringMatching(/cannot write \S+: ENOENT: .*; name a file in a folder that you can write\s*$/),
  })
  expect(await simulate(['schedule', '--html', '/dev/full'])).toMatchObject({
    exitCode: 74,
    err: expect.stringMatching(/cannot write \/dev\/full: ENOSPC: .*; free some space on its disk, or name a file on another one\s*$/),
  })
})

describe('simulate schedule --json', () => {
  test('prints policy and attempts only', async () => {
    const run = await simulate(['schedule', '--policy', 'doubling', '--json', '-o', 'maximal_queue_lifetime=1h'])
    expect(run.out).toBe('{"policy":"doubling","attempts":[0,300,900,2100,3600]}\n')
  })

  test('several policies, a line each', async () => {
    const rows = lines(
      await simulate(['schedule', '--policy', 'age', '--policy', 'table(5m,10m,1h)', '--json', '-o', 'maximal_queue_lifetime=2h']),
    )
    expect(rows).toEqual([
      { policy: 'age', attempts: [0, 300, 600, 1200, 2400, 4800, 7200] },
      { policy: 'table(5m,10m,1h)', attempts: [0, 300, 900, 4500, 7200] },
    ])
  })

  test('backoff times give a queue’s schedule; without them a policy has its own', async () => {
    const waits = async (...args: string[]) =>
      lines(await simulate(['schedule', '--policy', 'google-drive', '--json', ...args]))[0]?.attempts as number[]
    expect(await waits()).toHaveLength(5)
    const queued = await waits('-o', 'minimal_backoff_time=60s', '-o', 'maximal_queue_lifetime=1h')
    expect(queued[1]).toBeGreaterThanOrEqual(60)
    expect(queued.at(-1)).toBe(3600)
    expect((await waits('--queue'))[1]).toBeGreaterThanOrEqual(300)
  })

  test('the seed decides the schedule', async () => {
    const plan = async (seed: string) => (await simulate(['schedule', '--policy', 'thain', '--seed', seed, '--json'])).out
    expect(await plan('5')).toBe(await plan('5'))
    expect(await plan('5')).not.toBe(await plan('6'))
  })

  test('the configuration applies, with destination tables', async () => {
    const config = file(
      'deferd.toml',
      'minimal_backoff_time = "1m"\nmaximal_backoff_time = "2m"\nmaximal_queue_lifetime = "5m"\n[destination."gmail.com"]\nretry_backoff = "fixed"\n',
    )
    expect(lines(await simulate(['schedule', '--config', config, '--json']))).toEqual([
      { policy: 'doubling', attempts: [0, 60, 180, 300] },
      { policy: 'fixed at gmail.com', attempts: [0, 60, 120, 180, 240, 300] },
    ])
  })

  test('main.cf sets its grid, Exim its rules', async () => {
    const mainCf = file('main.cf', 'maximal_queue_lifetime = 1d\n')
    const rules = file('rules', '* * F,2h,15m; G,16h,1h,1.5; F,4d,6h\n')
    const [postfix, exim] = lines(await simulate(['schedule', '--main-cf', mainCf, '--exim', rules, '--json', '--plan']))
    expect(postfix).toMatchObject({ policy: 'main.cf', tries: { by_1h: 5, by_24h: 25, lifetime: 26 }, bounce: 88_800 })
    expect(exim).toMatchObject({ policy: 'exim *', warning: 103_612.5 })
    expect(exim?.attempts).toEqual(expect.arrayContaining([0, 900, 1800, 2700]))
    const [age] = lines(await simulate(['schedule', '--policy', 'age', '--grid', '300s', '--json', '-o', 'maximal_queue_lifetime=1d']))
    expect(age?.attempts).toEqual(postfix?.attempts)
  })

  test('the goal search', async () => {
    const [found] = lines(await simulate(['schedule', '--within', '30m', '--tries', '100', '--json']))
    expect(found).toMatchObject({ met: true, minimal_backoff_time: 1800, maximal_backoff_time: 1800, tries: 97 })
    const [short] = lines(await simulate(['schedule', '--within', '30m', '--tries', '10', '--json']))
    expect(short?.met).toBe(false)
    expect((await simulate(['schedule', '--within', '30m', '--outage', '5d'])).out).toContain('mail is\nreturned after 2d')
  })
})

describe('simulate schedule as text', () => {
  test('plots the attempts and compares the policies', async () => {
    const { out } = await simulate(['schedule', '--policy', 'kumomta', '--policy', 'doubling', '-o', 'maximal_queue_lifetime=5d'], {
      columns: 90,
    })
    expect(out).toMatch(/^kumomta +•/m)
    expect(out).toMatch(/an outage of 2d +1\.5d \/ 1\.7d +33m \/ 1\.1h/)
    for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(90)
  })
})

describe('impossible settings are refused with the reason', () => {
  const refused: readonly (readonly [string, number, RegExp, ...string[]])[] = [
    [
      'a minimum above the maximum',
      78,
      /minimal_backoff_time is above maximal_backoff_time/,
      '--policy',
      'fixed',
      '-o',
      'minimal_backoff_time=2h',
    ],
    ['an empty table', 64, /table is empty/, '--policy', 'table()'],
    ['a policy that overflows', 64, /overflows: 999999999d is over a hundred years/, '--policy', 'fixed(999999999d)'],
    ['a policy that would try without end', 64, /more than 1000000 attempts/, '--policy', 'fixed(1us)'],
    ['a name nobody knows', 64, /unknown policy "dubbling"/, '--policy', 'dubbling'],
    ['a grid for a policy that has none', 64, /--grid is for the policy age/, '--policy', 'fixed', '--grid', '5m'],
    ['a file that is not there', 65, /cannot read .*nowhere/, '--main-cf', join(folder, 'nowhere')],
    ['rules that are none', 65, /not a retry rule/, '--exim', file('broken', 'hello\n')],
  ]
  for (const [what, exitCode, reason, ...args] of refused) {
    test(what, async () => {
      const run = await simulate(['schedule', ...args])
      expect(run.err).toMatch(reason)
      expect(run.exitCode).toBe(exitCode)
      expect(run.out).toBe('')
    })
  }
})

describe('simulate contention', () => {
  test('--json prints the contract, a line per run', async () => {
    const run = await simulate(['contention', '--client', 'backoff', '--seed', '1', '--json'])
    expect(run.out).toBe(
      '{"client":"backoff","seed":1,"max_busy":50,"requests":2000,"makespan":48.475822,"attempts":17361,"completed":2000}\n',
    )
    const rows = lines(await simulate(['contention', '--client', 'reno', '--client', 'tahoe', '--max-busy', '100', '--json']))
    expect(rows.map(({ client, makespan, attempts }) => [client, makespan, attempts])).toEqual([
      ['reno', 13.07, 2142],
      ['tahoe', 13.502, 2199],
    ])
    expect(
      lines(await simulate(['contention', '--client', 'backoff', '--seed', '4', '--runs', '3', '--json'])).map(({ seed }) => seed),
    ).toEqual([4, 5, 6])
  })

  test('as text: a line per client, with a note on collapse', async () => {
    const { out } = await simulate(['contention', '--client', 'fixed', '--client', 'postfix'], { columns: 100 })
    expect(out).toMatch(/^fixed +collapsed +400,000 +50 /m)
    expect(out).toMatch(/^postfix +25\.1 s +2,041 +2,000 /m)
    expect(out).toContain('20.0 s would do')
  })

  test('the other models', async () => {
    const [row] = lines(await simulate(['contention', '--model', 'row', '--client', 'full', '--runs', '5', '--json']))
    expect(row).toMatchObject({ model: 'row', client: 'full', clients: 100 })
    expect((await simulate(['contention', '--model', 'crash', '--clients', '420'])).out).toMatch(/^ethernet +420 +5999 +0\.0/m)
    expect((await simulate(['contention', '--model', 'limit'])).out).toMatch(/^1\/N +16\.\d/m)
  })

  test('an unknown client is refused', async () => {
    expect(await simulate(['contention', '--client', 'vegas'])).toMatchObject({
      exitCode: 64,
      err: expect.stringContaining('unknown client "vegas"') as string,
    })
    expect(await simulate(['contention', '--model', 'row', '--client', 'reno'])).toMatchObject({ exitCode: 64 })
  })

  test('a long run shows its progress on a terminal only, and clears it', async () => {
    const args = ['contention', '--client', 'backoff', '--runs', '3', '--json']
    const long = await simulate(args, { columns: 80, tick: 100 })
    expect(long.err).toMatch(/█+░* +\d+ % backoff, seed 3/)
    expect(long.err.endsWith('\r\u001b[K')).toBe(true)
    expect((await simulate(args, { columns: 80 })).err).toBe('')
    expect((await simulate(args, { tick: 100 })).err).toBe('')
    expect(long.out).toBe((await simulate(args)).out)
  })
})
