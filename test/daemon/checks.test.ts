/** Checks of content in a daemon: files of tables, reload, sessions beside a long match, mail of sendmail. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { configFrom, type LoadedConfig } from '../../src/config/load.ts'
import { prepareFiles } from '../../src/daemon/preparation.ts'
import { startDaemon, type Daemon } from '../../src/daemon/daemon.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { Client } from '../interop/dialogue.ts'
import { threadTime } from '../support/thread-time.ts'
import { portBelowEphemeral } from '../support/ports.ts'

let home: string
let port: number
let daemon: Daemon | undefined

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'deferd-checks-'))
  port = await portBelowEphemeral()
})
afterEach(async () => {
  await daemon?.stop()
  daemon = undefined
  rmSync(home, { recursive: true })
})

const settings = (checks: object) =>
  configFrom(
    {
      queue_directory: join(home, 'queue'),
      smtpd_listen: `127.0.0.1:${port}`,
      transport_maps: { '*': 'discard:' },
      smtpd_junk_command_limit: 1e6,
      ...checks,
    },
    'relay.example',
  )

const start = (loaded: LoadedConfig) => startDaemon({ loaded, events: new Events(() => systemClock.now()) })

function table(name: string, ...lines: readonly string[]): string {
  const path = join(home, name)
  writeFileSync(path, `${lines.join('\n')}\n`)
  return path
}

/** A session in which a message may begin. */
async function session(): Promise<Client> {
  const client = await Client.open(port, '127.0.0.1')
  await client.reply()
  return client
}

async function asked(client: Client, text: string): Promise<string> {
  client.send(`${text}\r\n`)
  return client.reply()
}

/** A session that has the reply to DATA. */
async function sessionInData(): Promise<Client> {
  const client = await session()
  for (const line of ['EHLO c.example', 'MAIL FROM:<a@us.example>', 'RCPT TO:<b@far.example>', 'DATA']) await asked(client, line)
  return client
}

async function replyTo(header: string, client: Client): Promise<string> {
  const reply = await asked(client, `${header}\r\n\r\nhello\r\n.`)
  client.close()
  return reply.replace(/ as \w+/, '')
}

const submitted = async (header: string): Promise<string> => replyTo(header, await sessionInData())

test('a reload reads tables again; a table with a mistake leaves the tables as they are', async () => {
  const path = table('checks', '/^Subject: one/ REJECT')
  const loaded = settings({ header_checks: `regexp:${path}` })
  daemon = await start(loaded)
  expect([await submitted('Subject: one'), await submitted('Subject: two')]).toEqual([
    '550 5.7.1 message content rejected',
    '250 2.0.0 Ok: queued',
  ])
  table('checks', '# a comment', '/^Subject: two/ REJECT')
  await daemon.reload(loaded)
  expect([await submitted('Subject: one'), await submitted('Subject: two')]).toEqual([
    '250 2.0.0 Ok: queued',
    '550 5.7.1 message content rejected',
  ])
  table('checks', '/^Subject: (two/ REJECT')
  await expect(daemon.reload(loaded)).rejects.toThrow(`header_checks: ${path}, line 1: a parenthesis is not closed; add )`)
  expect(await submitted('Subject: two')).toBe('550 5.7.1 message content rejected')
})

describe('a start is refused with file, line and what to do', () => {
  test.each([
    [
      'header_checks',
      '/x/ FILTER smtp:[127.0.0.1]:10025',
      'FILTER is no action: deferd has no content filter; remove the rule, or filter in a relay before deferd',
    ],
    [
      'header_checks',
      '/x/ BCC a@b.example',
      'BCC is no action: deferd adds no recipients by content; use always_bcc, sender_bcc_maps or recipient_bcc_maps',
    ],
    [
      'header_checks',
      '/x/ DROP',
      'DROP is no action: write one of DUNNO, OK, IGNORE, STRIP, WARN, INFO, PASS, PREPEND, REPLACE, REJECT, DISCARD, HOLD, REDIRECT',
    ],
    ['header_checks', '/x/ REPLACE text', '"text" is no header field; write NAME: VALUE'],
    ['header_checks', '/x/ REDIRECT bob', '"bob" is no address; write REDIRECT user@example.com'],
    ['body_checks', '/x/ PREPEND', 'PREPEND has no text; write it after the action'],
    ['smtp_header_checks', '/x/ REJECT', 'REJECT is no action: write one of DUNNO, OK, IGNORE, STRIP, WARN, INFO, PREPEND, REPLACE'],
    ['smtp_header_checks', '/(x)/ $1', 'nothing is no action: write one of DUNNO, OK, IGNORE, STRIP, WARN, INFO, PREPEND, REPLACE'],
  ])('%s: %s', (name, rule, text) => {
    const path = table('checks', '# table', '', rule)
    expect(prepareFiles(settings({ [name]: `pcre:${path}` }))).toMatchObject({
      kind: 'refused',
      problems: [{ part: 'lookup tables', text: `${name}: ${path}, line 3: ${text}` }],
    })
  })

  test('also for values that the configuration has itself', () => {
    expect(prepareFiles(settings({ header_checks: 'static:{FILTER x:y}' }))).toMatchObject({ kind: 'refused' })
    expect(prepareFiles(settings({ body_checks: { spam: 'WARN', ham: 'EAT' } }))).toMatchObject({ kind: 'refused' })
    expect(prepareFiles(settings({ alias_maps: `regexp:${table('aliases', '/^(a)/ $1@b.example')}` }))).toMatchObject({ kind: 'refused' })
  })
})

/** Replies to another session while a thread matches: hundreds, and dozens on a loaded machine. A match on the event loop leaves about ten. */
const LEAST_REPLIES = 20
const MATCH_TOO_LONG = '451 4.3.0 Error: message content cannot be examined'

interface Waits {
  /** Longest processor time of the event loop in ms between a command and its reply. */
  readonly longest: number
  readonly replies: number
}

/** The waits of another session while `work` is done. */
async function waitsBeside(client: Client, work: Promise<unknown>): Promise<Waits> {
  const state = { isOver: false }
  let longest = 0
  let replies = 0
  void work.finally(() => (state.isOver = true))
  while (!state.isOver) {
    const from = threadTime()
    await asked(client, 'NOOP')
    longest = Math.max(longest, threadTime() - from)
    replies++
  }
  client.close()
  return { longest, replies }
}

/** Submits a message beside another session. */
async function timedMatch(header: string): Promise<{ readonly waits: Waits; readonly reply: string }> {
  const other = await session()
  const reply = replyTo(header, await sessionInData())
  return { waits: await waitsBeside(other, reply), reply: await reply }
}

describe('a long match delays no other session by 50 ms', () => {
  const header = `X-Long: ${'a'.repeat(100_000)}!`

  test.each([
    ['(a+)+$', '250 2.0.0 Ok: queued'],
    ['^X-Long: (a?){900}\\bq', MATCH_TOO_LONG],
  ])('%s against a header of 100 kB', async (pattern, expected) => {
    daemon = await start(settings({ header_checks: `pcre:${table('checks', `/${pattern}/ WARN`)}` }))
    await submitted('X-Short: a')
    const { waits, reply } = await timedMatch(header)
    expect(waits.longest).toBeLessThan(50)
    expect(waits.replies).toBeGreaterThan(LEAST_REPLIES)
    // On a loaded machine any match may exceed its time limit; the client tries again, as after each temporary failure.
    const replyAtLast = async () => (reply === expected ? reply : submitted(header))
    await expect.poll(replyAtLast, { timeout: 60_000 }).toBe(expected)
  })
})
