/** Limits of the queue of a real daemon that are switched on, changed and switched off by reloads, and `sendmail` at a full queue. */
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { until } from '../support/node-cluster.ts'
import { portBelowEphemeral } from '../support/ports.ts'
import { DaemonFolder, type Ended, type StartedProcess } from '../support/started-daemon.ts'
import { dialogueAt } from '../support/world-dialogue.ts'

const LIMIT = 240_000
const FULL = '452 4.3.1 Error: queue is full, try again later'
const OK = '250 2.1.0 Ok'
const EHLO = 'EHLO app.us.example'
const FROM_US = 'MAIL FROM:<app@us.example>'

let folder: DaemonFolder
beforeEach(() => {
  folder = new DaemonFolder()
})
afterEach(() => folder.close())

interface Site {
  readonly daemon: StartedProcess
  configure(...parameters: readonly string[]): void
  /** Writes the configuration and reloads it. */
  reload(...parameters: readonly string[]): Promise<Ended>
  says(...command: readonly string[]): Promise<Ended>
  replyTo(...lines: readonly string[]): Promise<string>
  gauge(): Promise<readonly string[]>
}

async function siteWith(...parameters: readonly string[]): Promise<Site> {
  const [config, port, metrics] = [join(folder.path, 'deferd.toml'), await portBelowEphemeral(), await portBelowEphemeral()]
  const lines = [
    `queue_directory = "${folder.path}/queue"`,
    `smtpd_listen = "127.0.0.1:${port}"`,
    `http_listen = "127.0.0.1:${metrics}"`,
    'relayhost = "[127.0.0.1]:9"',
  ]
  const configure = (...more: readonly string[]) => writeFileSync(config, `${[...lines, ...more].join('\n')}\n`)
  configure(...parameters)
  const run = (...command: readonly string[]) => folder.run([...command, '--config', config], {}, { isConfigured: true })
  const daemon = run('start')
  await daemon.prints('queue directory')
  const says = (...command: readonly string[]) => run(...command).ended
  return {
    daemon,
    configure,
    reload: (...more) => {
      configure(...more)
      return says('reload')
    },
    says,
    replyTo: async (...commands) => (await dialogueAt(port, [EHLO, ...commands])).at(-1) ?? '',
    gauge: async () => {
      const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text()
      return text.split('\n').filter((line) => line.startsWith('deferd_queue_limit_ratio{'))
    },
  }
}

async function fill(site: Site, count: number): Promise<void> {
  for (let n = 0; n < count; n++)
    expect(await site.replyTo(FROM_US, `RCPT TO:<u${n}@far.example>`, 'DATA', 'Subject: hi\r\n\r\nhi\r\n.')).toMatch(/^250 2\.0\.0 /)
}

const replies = (site: Site, expected: string) => until(expected, LIMIT, async () => (await site.replyTo(FROM_US)) === expected)

interface LimitShown {
  readonly share: string | null
  readonly measure: string
  readonly used: number
  readonly limit: number
  readonly refused_since: number | null
  readonly text: string
}

const limitsOf = async (site: Site): Promise<readonly LimitShown[]> =>
  (JSON.parse((await site.says('status', '--json')).out) as { readonly limits: readonly LimitShown[] }).limits

test(
  'limits are switched on, changed and switched off by reloads; one with mistakes keeps those in effect',
  { timeout: LIMIT },
  async () => {
    const site = await siteWith()
    await fill(site, 4)
    expect(await limitsOf(site)).toEqual([])
    expect(await site.gauge()).toEqual([])

    expect(await site.reload('queue_message_limit = 4')).toMatchObject({ code: 0 })
    await replies(site, FULL)
    expect(await site.gauge()).toEqual(['deferd_queue_limit_ratio{scope="queue"} 1'])
    const [limit] = await limitsOf(site)
    expect(limit).toMatchObject({ share: null, measure: 'messages', used: 4, limit: 4, refused_since: expect.any(Number) as number })
    const checked = await site.says('check')
    expect(checked.out).toMatch(/^warning limits +4 of 4 messages in the queue: mail is refused; see deferd queue causes$/m)

    const wrong = await site.reload('queue_message_limit = 9', 'queue_share_message_limit = 10', 'queue_limit_resume = "100%"')
    expect(wrong).toMatchObject({ code: 78 })
    for (const text of ['queue_share_message_limit: 10 is more than queue_message_limit', 'queue_limit_resume: expected a percentage'])
      expect(wrong.err).toContain(text)
    expect(await site.replyTo(FROM_US)).toBe(FULL)
    site.daemon.child.kill('SIGHUP')
    await site.daemon.prints('queue_limit_resume: expected a percentage')
    expect(await site.replyTo(FROM_US)).toBe(FULL)
    expect(await site.gauge()).toEqual(['deferd_queue_limit_ratio{scope="queue"} 1'])
    site.configure('queue_message_limit = 4')
    expect(await limitsOf(site)).toEqual([limit])

    site.configure('queue_message_limit = 10', 'queue_share_message_limit = "10%"')
    site.daemon.child.kill('SIGHUP')
    await replies(site, OK)
    await fill(site, 1)
    // The mail from before has no share.
    await replies(site, '452 4.3.1 Error: too much mail of us.example in the queue')
    expect(await site.gauge()).toEqual(['deferd_queue_limit_ratio{scope="queue"} 0.5', 'deferd_queue_limit_ratio{scope="share"} 1'])

    expect(await site.reload()).toMatchObject({ code: 0 })
    await replies(site, OK)
    expect(await limitsOf(site)).toEqual([])
    expect(await site.gauge()).toEqual([])
    await fill(site, 1)
  },
)

test('sendmail at a full queue ends with 0, and its mail is taken in later, in order', { timeout: LIMIT }, async () => {
  const site = await siteWith('queue_message_limit = 2')
  await fill(site, 2)
  await replies(site, FULL)
  const send = async (name: string) =>
    expect(await site.says('sendmail', '-f', 'app@us.example', `${name}@far.example`)).toMatchObject({ code: 0 })
  for (const name of ['ann', 'ben', 'cid']) await send(name)
  const drop = () => readdirSync(join(folder.path, 'queue', 'maildrop'))
  expect(drop()).toHaveLength(3)
  await site.daemon.prints('put off: Error: queue is full, try again later')
  const recipients = async () => {
    const { out } = await site.says('queue', 'list', '--json')
    const rows = out.split('\n').filter((row) => row !== '' && !row.includes('"queue_name":"maildrop"'))
    return rows.flatMap((row) => /(ann|ben|cid|dan|eve)@far\.example/.exec(row)?.[1] ?? [])
  }
  expect(await site.says('queue', 'delete', '--recipient', 'u*@far.example')).toMatchObject({ code: 0 })
  // Each submission wakes the daemon, which looks by itself once a minute.
  await send('dan')
  await until('two are taken in', LIMIT, () => drop().length === 2)
  expect(await recipients()).toEqual(['ann', 'ben'])
  expect(await site.says('queue', 'delete', '--all')).toMatchObject({ code: 0 })
  await send('eve')
  await until('two more are taken in', LIMIT, () => drop().length === 1)
  expect(await recipients()).toEqual(['cid', 'dan'])
})
