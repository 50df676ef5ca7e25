/** `deferd simulate run`: the real queue with scripted remote servers, in virtual time and reproducible. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { simulate } from '../../support/simulate-command.ts'

const folder = mkdtempSync(join(tmpdir(), 'deferd-scenario-'))
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
function scenario(text: string): string {
  const path = join(folder, `scenario-${++files}.toml`)
  writeFileSync(path, text)
  return path
}

async function jsonOf(text: string, ...args: readonly string[]): Promise<Record<string, unknown>> {
  const run = await simulate(['run', scenario(text), '--json', ...args])
  expect(run).toMatchObject({ exitCode: null, err: '' })
  return JSON.parse(run.out) as Record<string, unknown>
}

const example = (name: string): string => new URL(`../../../examples/${name}.toml`, import.meta.url).pathname

describe('one message', () => {
  const MAIL = 'latency = 0\n[mail]\nmessages = 1\nto = "far.example"\n'

  test('without failures: each member of the JSON', async () => {
    const path = scenario(MAIL)
    const { out } = await simulate(['run', path, '--json', '--seed', '7'])
    expect(JSON.parse(out)).toEqual({
      scenario: 'scenario-1.toml',
      seed: 7,
      ended: 0,
      messages: 1,
      recipients: 1,
      delivered: 1,
      bounced: 0,
      expired: 0,
      queued: 0,
      attempts: 1,
      failed: 0,
      notices: { failure: 0, delay: 0, success: 0 },
      destinations: [
        {
          destination: 'far.example',
          recipients: 1,
          delivered: 1,
          bounced: 0,
          expired: 0,
          queued: 0,
          attempts: 1,
          failed: 0,
          wait: { mean: 0, p50: 0, p95: 0, max: 0 },
          last_delivery: 0,
          deaths: 0,
          largest_window: 5,
        },
      ],
    })
  })

  test('is tried on schedule: at 0, 300, 900, 2100 and 4500 seconds', async () => {
    const result = await jsonOf(`${MAIL}[rule.down]\nconnect = "refused"\nuntil = "1h"\n`)
    expect(result).toMatchObject({ attempts: 5, failed: 4, delivered: 1, ended: 4500, destinations: [{ wait: { max: 4500 }, deaths: 0 }] })
  })

  test('that is always deferred is returned after a delay notice', async () => {
    const result = await jsonOf(
      `${MAIL}[config]\nmaximal_queue_lifetime = "1d"\ndelay_warning_time = "4h"\n[rule.down]\nat = "rcpt"\ndomain = "far.example"\nreply = "450 4.2.0 no"\n`,
    )
    expect(result).toMatchObject({ ended: 86_400, expired: 1, notices: { failure: 1, delay: 1 } })
  })

  test('rejected with 5xx is returned at once', async () => {
    const result = await jsonOf(`${MAIL}[rule.no]\nat = "rcpt"\ndomain = "far.example"\nreply = "550 5.1.1 no such user"\n`)
    expect(result).toMatchObject({ ended: 0, bounced: 1, expired: 0, notices: { failure: 1 } })
  })

  test('a round trip takes 100 ms by default', async () => {
    // The connection, greeting, EHLO, MAIL with what follows it, and the reply after the dot.
    expect(await jsonOf(MAIL.replace('latency = 0\n', ''))).toMatchObject({ ended: 0.5 })
  })
})

test('a duration ends it with mail still queued', async () => {
  const result = await jsonOf(
    'duration = "30m"\n[mail]\nmessages = 60\nto = "far.example"\nrate = "1/1m"\n[rule.down]\nconnect = "refused"\nfrom = "10m"\n',
  )
  expect(result).toMatchObject({ ended: 1800, recipients: 31, delivered: 10, queued: 21 })
})

test('each message has several recipients, and the domains take turns', async () => {
  const result = await jsonOf('[mail]\nmessages = 5\nto = ["a.example", "b.example"]\nrecipients = 3\n')
  expect(result).toMatchObject({ messages: 5, recipients: 15, destinations: [{ recipients: 9 }, { recipients: 6 }] })
})

test('mail is counted at its routed destination', async () => {
  const result = await jsonOf('[mail]\nmessages = 2\nto = ["a.example", "b.example"]\n[config]\nrelayhost = "[hub.example]:587"\n')
  expect(result).toMatchObject({ destinations: [{ destination: 'smtp:[hub.example]:587', delivered: 2 }] })
})

describe('reproducible', () => {
  const chance =
    '[mail]\nmessages = 100\nto = "far.example"\nover = "10m"\n[rule.chance]\nat = "rcpt"\nprobability = "30%"\nreply = "451 4.3.0 perhaps later"\n'

  test('the same seed gives the same run', async () => {
    const first = await jsonOf(chance, '--seed', '3')
    expect({ ...(await jsonOf(chance, '--seed', '3')), scenario: '' }).toEqual({ ...first, scenario: '' })
    expect(first).toMatchObject({ delivered: 100 })
  })

  test('another seed gives another run', async () => {
    const [three, four] = [await jsonOf(chance, '--seed', '3'), await jsonOf(chance, '--seed', '4')]
    expect(three['failed']).not.toBe(four['failed'])
  })
})

describe('the examples', () => {
  test('greylisting: mail deferred for five minutes is delivered after five minutes', async () => {
    const { out } = await simulate(['run', example('greylisting'), '--json'])
    expect(JSON.parse(out)).toMatchObject({
      delivered: 200,
      destinations: [
        { failed: 100, wait: { p50: 300.9 } },
        { destination: 'picky.example', failed: 114 },
      ],
    })
  })

  test('a three-hour outage: ten attempts for 177 messages', async () => {
    const { out } = await simulate(['run', example('three-hour-outage'), '--json'])
    expect(JSON.parse(out)).toMatchObject({
      delivered: 900,
      destinations: [{ failed: 0 }, { destination: 'bob.example', failed: 10, deaths: 1 }, { failed: 0 }],
    })
  })

  test('a rate-limited provider: 1,000 of its 20,000 messages (all in test:long)', async () => {
    const text = readFileSync(example('rate-limited-provider'), 'utf8')
    expect(text).toContain('messages = 20000\n')
    expect(await jsonOf(text.replace('messages = 20000\n', 'messages = 1000\n'))).toMatchObject({
      delivered: 1600,
      queued: 0,
      destinations: [{ deaths: 1 }, { failed: 0, wait: { max: 0.5 } }, { failed: 0, wait: { max: 0.5 } }],
    })
  })

  test('a connection limit: the window stays just above it', async () => {
    const path = example('connection-limit')
    const { out } = await simulate(['run', path, '--json'])
    expect(JSON.parse(out)).toMatchObject({ delivered: 1000, failed: 198, destinations: [{ largest_window: 6, deaths: 0 }] })
    const calm = await simulate(['run', path, '--json', '-o', 'default_destination_concurrency_limit=5'])
    expect(JSON.parse(calm.out)).toMatchObject({ delivered: 1000, failed: 0 })
  })
})

describe('text output', () => {
  test('a table, and a plot over time, in which an outage is a shaded row at its times', async () => {
    const { out } = await simulate(['run', example('three-hour-outage')], { columns: 100 })
    expect(out).toMatch(/^three-hour-outage\.toml, seed 1: 900 messages to 900 recipients in 5h 59m of virtual time$/m)
    expect(out).toMatch(/^bob\.example +300 +300 +0 +0 +10 +34m \d+s +3h 16m +5h 59m$/m)
    expect(out).toMatch(/^ +0 +1h +2h +3h +4h +5h$/m)
    expect(out).toMatch(/^ {2}in queue, at most \d+ +▁▁.*█/m)
    expect(out).toMatch(/^ {2}window, at most \d+ +▃+ +█+$/m)
    const row = out.split('\n').find((line) => line.startsWith('outage at bob.example'))
    const axis = out.split('\n').find((line) => /^ +0 +1h/.test(line))
    expect(row?.indexOf('░')).toBe(axis?.indexOf('1h'))
    expect(row?.length).toBe(axis?.indexOf('4h'))
    for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(100)
  })

  test('a page with plots, and the command that reproduces it', async () => {
    const path = join(folder, 'page.html')
    const run = await simulate(['run', example('connection-limit'), '-o', 'initial_destination_concurrency=2', '--html', path])
    expect(run).toMatchObject({ exitCode: null, err: '' })
    const html = readFileSync(path, 'utf8')
    expect(html.length).toBeLessThan(1_000_000)
    for (const title of ['In the queue', 'Delivered', 'Failed attempts', 'Windows']) expect(html).toContain(`<h2>${title}</h2>`)
    expect(html).toMatch(/deferd simulate run -o initial_destination_concurrency=2 \S*connection-limit\.toml/)
  })

  test('progress on a terminal, with and without an end', async () => {
    for (const duration of ['', 'duration = "1h"\n']) {
      const path = scenario(`${duration}[mail]\nmessages = 200\nto = "far.example"\nover = "10m"\n`)
      const { err } = await simulate(['run', path], { columns: 80, tick: 100 })
      expect(err).toMatch(/█+░* +\d+ % 200 messages/)
      expect(err.endsWith('\r\u001b[K')).toBe(true)
    }
  })

  test('mistakes exit with 78, a missing file with 65', async () => {
    expect(await simulate(['run', scenario('[mail]\nmessages = 1\nto = "a.example"\nsise = 1\n')])).toMatchObject({
      exitCode: 78,
      err: expect.stringMatching(/^scenario-\d+\.toml:4: unknown key sise; did you mean size\?$/) as string,
      out: '',
    })
    expect(await simulate(['run', join(folder, 'nowhere.toml')])).toMatchObject({ exitCode: 65 })
  })
})
