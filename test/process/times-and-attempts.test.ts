/** Scheduled mail and limits of attempts at a real daemon, on both stores: commands, protocols, reloads, and a node that is killed. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { NodeCluster, until } from '../support/node-cluster.ts'
import { portBelowEphemeral } from '../support/ports.ts'
import { usePostgres, WITHOUT_POSTGRES } from '../support/postgres-queue.ts'
import { RemoteLedger } from '../support/remote-ledger.ts'
import { DaemonFolder, type Ended } from '../support/started-daemon.ts'
import { dialogueAt } from '../support/world-dialogue.ts'

const LIMIT = 240_000

interface Site {
  readonly port: number
  readonly remote: RemoteLedger
  /** Writes the configuration. */
  configure(parameters: string): void
  start(): Promise<void>
  says(...command: readonly string[]): Promise<Ended>
}

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function siteOn(database: string): Promise<Site> {
  const [folder, remote, port] = [new DaemonFolder(), new RemoteLedger(), await portBelowEphemeral()]
  const remotePort = await remote.listen()
  closers.push(
    () => folder.close(),
    () => remote.close(),
  )
  const config = join(folder.path, 'deferd.toml')
  const lines = [
    `queue_directory = "${folder.path}/queue"`,
    `smtpd_listen = "127.0.0.1:${port}"`,
    `relayhost = "[127.0.0.1]:${remotePort}"`,
    database,
  ]
  const run = (...command: readonly string[]) => folder.run([...command, '--config', config], {}, { isConfigured: true })
  return {
    port,
    remote,
    configure: (parameters) => writeFileSync(config, `${lines.join('\n')}\n${parameters}\n`),
    start: () => run('start').prints('queue directory'),
    says: (...command) => run(...command).ended,
  }
}

const messageTo = (recipient: string, parameters = ''): readonly string[] => [
  'EHLO client.example',
  `MAIL FROM:<app@us.example>${parameters}`,
  `RCPT TO:<${recipient}>`,
  'DATA',
  `Subject: hi\r\nX-Number: 1\r\n\r\nhi\r\n.`,
]

async function submitted({ port }: Pick<Site, 'port'>, recipient: string, parameters = ''): Promise<string> {
  const replies = await dialogueAt(port, messageTo(recipient, parameters))
  const [, id = ''] = /queued as (\w+)/.exec(replies.at(-1) ?? '') ?? []
  expect(id, replies.join('\n')).not.toBe('')
  return id
}

interface Shown {
  readonly queue_name: string
  readonly recipients: readonly { readonly state: string; readonly attempts: number; readonly rule: string | null }[]
}

const shown = async (site: Site, id: string): Promise<Shown> => JSON.parse((await site.says('queue', 'show', id, '--json')).out) as Shown

/** All that flush the whole queue, a site or a message. */
const flushes = (id: string): readonly (readonly string[])[] => [
  ['queue', 'flush', '--all'],
  ['queue', 'flush', id],
  ['queue', 'flush', '--recipient', '*@far.example'],
  ['queue', 'flush', '--older-than', '0s'],
  ['postqueue', '-f'],
  ['postqueue', '-i', id],
  ['postqueue', '-s', 'far.example'],
  ['sendmail', '-q'],
]

describe.skipIf(WITHOUT_POSTGRES.skip)(`on both stores${WITHOUT_POSTGRES.why}`, { timeout: LIMIT }, () => {
  const { server, emptyQueue } = usePostgres()

  const databaseOf = async (store: string): Promise<string> => {
    if (store === 'SQLite') return ''
    await emptyQueue()
    return `queue_database = "${server().url()}"\nqueue_database_durability = "primary"\nnode_name = "mx1"`
  }

  describe.each(['SQLite', 'PostgreSQL'])('%s', (store) => {
    test('attempts × flush, reload: the third step returns the message, whatever lies between', async () => {
      const site = await siteOn(await databaseOf(store))
      // The limit is lowered before the third step, after several commands: seconds on a busy machine.
      const backoff = 'minimal_backoff_time = "12s"\nmaximal_backoff_time = "12s"'
      site.configure(`${backoff}\nmaximal_delivery_attempts = 9`)
      await site.start()
      const id = await submitted(site, 'busy-1@far.example')
      await until('attempted', LIMIT, async () => ((await shown(site, id)).recipients[0]?.attempts ?? 0) > 0)
      site.configure(`${backoff}\nmaximal_delivery_attempts = 3`)
      expect(await site.says('reload')).toMatchObject({ code: 0 })
      let flushed = 0
      for (let n = 0; n < 5; n++) {
        const { out, code } = await site.says('queue', 'flush', id, '--json')
        // The message may have been returned by then on a busy machine.
        if (code === 0) flushed += (JSON.parse(out) as { readonly changed: number }).changed
      }
      await until('returned', LIMIT, async () => (await shown(site, id)).queue_name === 'gone')
      const { recipients } = await shown(site, id)
      expect(recipients).toMatchObject([{ state: 'expired', attempts: 3 + flushed, rule: 'maximal_delivery_attempts = 3' }])
      await until('reported', LIMIT, () => site.remote.noticedAbout.size === 1)
    })

    test('scheduled × flush, reload, release: no flush and no reroute sends it, and a release does', async () => {
      const site = await siteOn(await databaseOf(store))
      const limit = 'smtpd_future_release_limit = "7d"\nfast_flush_domains = ["far.example"]'
      site.configure(limit)
      await site.start()
      const id = await submitted(site, 'ann@far.example', ' HOLDFOR=86400')
      for (const command of flushes(id)) expect([command, (await site.says(...command)).code]).toEqual([command, 0])
      expect((await dialogueAt(site.port, ['EHLO client.example', 'ETRN far.example'])).at(-1)).toMatch(/^250 /)
      site.configure(`${limit}\n[transport_maps]\n"far.example" = "smtp:[127.0.0.1]:9"`)
      expect(await site.says('reload')).toMatchObject({ code: 0 })
      expect((await site.says('queue', 'flush', '--all')).out).toContain('1 is scheduled')
      expect((await site.says('queue', 'list', '--queue', 'scheduled', '--count')).out.trim()).toMatch(/^1\b/)
      expect(site.remote.begun).toEqual([])
      site.configure(limit)
      expect(await site.says('reload')).toMatchObject({ code: 0 })
      expect(await site.says('queue', 'release', id)).toMatchObject({ code: 0 })
      await until('delivered', LIMIT, () => site.remote.deliveredTo.get('ann@far.example')?.length === 1)
    })
  })

  test('scheduled × takeover: the node that took the mail is killed, and the other one sends it at its time', async () => {
    const cluster = await NodeCluster.open({ smtpd_future_release_limit: '1d' })
    closers.push(() => cluster.close())
    const [first] = await cluster.startAll('n1', 'n2')
    if (first === undefined) throw new Error('two nodes were started')
    await cluster.shared('n1', 'n2')
    const at = Date.now()
    for (let n = 0; n < 6; n++) await submitted(first, `user@d${n}.example`, ' HOLDFOR=15')
    first.process.child.kill('SIGKILL')
    await until('delivered', LIMIT, () => cluster.far.every(({ delivered }) => delivered.size > 0))
    const times = cluster.far.flatMap(({ deliveredTo }) => [...deliveredTo.values()].flat())
    expect(times).toHaveLength(6)
    expect(Math.min(...times) - at).toBeGreaterThanOrEqual(15_000)
  })
})
