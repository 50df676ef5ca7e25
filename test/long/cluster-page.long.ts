/**
 * Follows docs/cluster.md in a folder with a checkout: runs only the fenced blocks, in order. The blocks of one machine run as they are;
 * in those of several machines, the names of hosts and folders are replaced.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { blocksOf, blockWith } from '../support/fenced-blocks.ts'
import { until } from '../support/node-cluster.ts'
import { asServerUser, postgresTools, reasonWithoutPostgres, startPostgres } from '../support/postgres-server.ts'
import { DaemonFolder, type StartedProcess } from '../support/started-daemon.ts'

const PAGE = 'docs/cluster.md'
const ROOT = join(import.meta.dirname, '../..')
const PROGRAM = join(ROOT, 'bin/deferd.js')
const reason = reasonWithoutPostgres()

describe.skipIf(reason !== null)(`docs/cluster.md${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  let checkout = ''
  beforeEach(() => {
    checkout = mkdtempSync(join(tmpdir(), 'deferd-cluster-page-'))
    for (const name of ['bin', 'src', 'migrations', 'scripts', 'test', 'node_modules', 'package.json'])
      symlinkSync(join(ROOT, name), join(checkout, name))
    execFileSync('chmod', ['755', checkout])
  })
  afterEach(() => rmSync(checkout, { recursive: true, force: true, maxRetries: 5 }))

  test('two nodes on one machine: one is killed, and nothing is lost, in less than ten minutes', () => {
    const blocks = blocksOf(PAGE)
    const last = blocks.findIndex(({ text }) => text.includes('ls received'))
    expect(blocks.slice(0, last + 1).every(({ language }) => language === 'sh')).toBe(true)
    // In a real checkout, npx finds the program of the package itself. The program has the process id of its job.
    const tools = join(checkout, 'tools')
    mkdirSync(tools)
    writeFileSync(join(tools, 'npx'), '#!/bin/sh\nshift\nexec node bin/deferd.js "$@"\n', { mode: 0o755 })
    const end = 'kill $(jobs -p) 2>/dev/null; wait\n'
    const script = `set -e\n${blocks
      .slice(0, last + 1)
      .map(({ text }) => text)
      .join('')}set +e\n${end}`
    writeFileSync(join(checkout, 'page.sh'), script)
    const { DEFERD_CONFIG: _, ...env } = process.env
    const output = openSync(join(checkout, 'page.out'), 'w')
    env['PATH'] = `${tools}:${env['PATH']}`
    const { status } = spawnSync('bash', ['page.sh'], { cwd: checkout, env, stdio: ['ignore', output, output], timeout: 600_000 })
    closeSync(output)
    expect(status, readFileSync(join(checkout, 'page.out'), 'utf8')).toBe(0)
    expect(readdirSync(join(checkout, 'received'))).toHaveLength(20)
  })

  test('three nodes: from an empty database to a restored one', async () => {
    const tools = postgresTools()
    const binaries = tools === null ? {} : { binaries: tools }
    const primary = await startPostgres(binaries)
    const folders = ['mx1', 'mx2', 'mx3'].map(() => new DaemonFolder())
    const standbyFolder = mkdtempSync(join(tmpdir(), 'deferd-pg-'))
    const servers = [primary]
    const run = async (part: string): Promise<void> => {
      for (const statement of blockWith(PAGE, part).text.split(';')) if (statement.trim() !== '') await primary.query(statement)
    }
    /** Runs a block with the programs of PostgreSQL. */
    const typed = (part: string, ...replaced: readonly (readonly [string, string])[]): string =>
      asServerUser(
        replaced
          .reduce((text, [from, to]) => text.replaceAll(from, to), blockWith(PAGE, part).text)
          .replaceAll('@db1.example.com', `@127.0.0.1:${primary.port}`)
          .replaceAll('--host=db1.example.com', `--host=127.0.0.1 --port=${primary.port} --username=postgres`)
          .replace('--username=postgres --username=rep', '--username=rep')
          .replaceAll('deferd.dump', join(standbyFolder, 'deferd.dump')),
        tools ?? '',
      )
    const page = (name: string, hosts: string, folder: DaemonFolder): string => {
      const toml = blockWith(PAGE, 'node_name = ')
        .text.replaceAll('mx1', name)
        .replace('db1.example.com,db2.example.com/deferd?sslmode=verify-full', hosts)
        .replace('/var/lib/deferd', join(folder.path, 'queue'))
      writeFileSync(join(folder.path, 'deferd.toml'), `${toml}relayhost = "[127.0.0.1]:9"\n`)
      return join(folder.path, 'deferd.toml')
    }
    const said = async (folder: DaemonFolder, ...command: readonly string[]): Promise<string> => {
      const { code, out, err } = await folder.script(PROGRAM, ...command, '--config', join(folder.path, 'deferd.toml')).ended
      expect(code, `${command.join(' ')}: ${out}${err}`).toBe(0)
      return out
    }
    const started = async (folder: DaemonFolder): Promise<StartedProcess> => {
      const listen = ['-o', 'smtpd_listen=127.0.0.1:0', '-o', 'http_listen=127.0.0.1:0']
      const daemon = folder.script(PROGRAM, 'start', '--config', join(folder.path, 'deferd.toml'), ...listen)
      await daemon.prints('metrics: ')
      return daemon
    }
    const ready = async ({ out }: StartedProcess): Promise<number> =>
      (await fetch(/metrics: (http:\S+)\/metrics/.exec(out)?.[1]?.concat('/readyz') ?? '')).status
    try {
      await run('create user deferd')
      if (tools === null) {
        await primary.stop()
        servers.push(await startPostgres({ copyOf: primary, follows: primary }))
        await primary.start()
      } else {
        execFileSync('chmod', ['777', standbyFolder])
        typed('pg_basebackup', ['/var/lib/postgresql/data', join(standbyFolder, 'data')])
        servers.push(await startPostgres({ ...binaries, folder: standbyFolder }))
      }
      await until('the standby streams', 60_000, async () => {
        const [found] = await primary.query(blockWith(PAGE, 'select application_name').text)
        return found?.['state'] === 'streaming'
      })
      await run('alter system set synchronous_standby_names')

      const hosts = `${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}/deferd`
      expect(blockWith(PAGE, 'deferd check\n').text.trim().split('\n')).toEqual(['deferd check', 'deferd start', 'deferd node list'])
      const daemons: StartedProcess[] = []
      for (const [n, folder] of folders.entries()) {
        page(`mx${n + 1}`, hosts, folder)
        await said(folder, 'check')
        daemons.push(await started(folder))
        await until('listed', 60_000, async () => (await said(folder, 'node', 'list')).includes(`mx${n + 1}`))
      }
      const [first, , third] = folders
      const [drained] = daemons
      if (first === undefined || third === undefined || drained === undefined) throw new Error('no nodes')
      writeFileSync(join(first.path, 'mail'), 'Subject: kept\n\nText.\n')
      execFileSync('sh', [
        '-c',
        `"$0" "$1" sendmail --config ${first.path}/deferd.toml -f me@us.example you@far.example < ${first.path}/mail`,
        process.execPath,
        PROGRAM,
      ])
      expect(await Promise.all(daemons.map(ready))).toEqual([200, 200, 200])
      await said(third, 'node', 'drain', 'mx1')
      const since = performance.now()
      await until('not ready', 60_000, async () => (await ready(drained)) === 503)
      // Promised: 1 s.
      expect(performance.now() - since).toBeLessThan(10_000)
      expect(await said(third, 'queue', 'list', '--count')).toBe('1\n')
      if (tools === null) return

      typed('pg_dump --format')
      for (const { child, ended } of daemons) {
        child.kill('SIGTERM')
        expect((await ended).code).toBe(0)
      }
      typed('createdb', ['postgresql://deferd@', 'postgresql://deferd@'])
      page('mx4', hosts.replace(/deferd$/, 'deferd_restored'), third)
      const hold = blockWith(PAGE, 'queue hold --all').text.trim().split(' ').slice(1)
      expect(await said(third, ...hold)).toContain('1 message put on hold')
      await started(third)
      expect(await said(third, 'queue', 'list', '--count', '--queue', 'hold')).toBe('1\n')
      await until('the former nodes are taken over', 60_000, async () => !(await said(third, 'node', 'list')).includes('silent'))
      await said(third, 'queue', 'release', '--all', '--yes')
    } finally {
      await Promise.all(folders.map((folder) => folder.close()))
      for (const server of servers) await server.remove()
      rmSync(standbyFolder, { recursive: true, force: true })
    }
  })
})
