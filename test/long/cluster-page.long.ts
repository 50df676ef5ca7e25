/**
 * Follows docs/cluster.md in a folder with a checkout: runs only the fenced blocks, in order. The blocks of one machine run as they are;
 * in those of several machines, the names of hosts and folders are replaced.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { blocksOf, blockWith } from '../support/fenced-blocks.ts'
import { until } from '../support/node-cluster.ts'
import { reasonWithoutPostgres, startPostgres } from '../support/postgres-server.ts'
import { DaemonFolder } from '../support/started-daemon.ts'

const PAGE = 'docs/cluster.md'
const ROOT = join(import.meta.dirname, '../..')
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
    // In a real checkout, npx finds the program of the package itself.
    const npx = 'npx() { shift; node bin/deferd.js "$@"; }\n'
    const end = "kill $(jobs -p) 2>/dev/null; kill $(sed -n 's/.*master\\[\\([0-9]*\\)\\].* joined .*/\\1/p' mx2.log); wait\n"
    const script = `set -e\n${npx}${blocks
      .slice(0, last + 1)
      .map(({ text }) => text)
      .join('')}set +e\n${end}`
    writeFileSync(join(checkout, 'page.sh'), script)
    const { DEFERD_CONFIG: _, ...env } = process.env
    const output = openSync(join(checkout, 'page.out'), 'w')
    const { status } = spawnSync('bash', ['page.sh'], { cwd: checkout, env, stdio: ['ignore', output, output], timeout: 600_000 })
    closeSync(output)
    expect(status, readFileSync(join(checkout, 'page.out'), 'utf8')).toBe(0)
    expect(readdirSync(join(checkout, 'received'))).toHaveLength(20)
  })

  test('two nodes and a standby: the database, the configuration and the commands', async () => {
    const primary = await startPostgres()
    await primary.stop()
    const standby = await startPostgres({ copyOf: primary, follows: primary })
    const folders = ['mx1', 'mx2'].map(() => new DaemonFolder())
    try {
      await primary.start()
      for (const statement of blockWith(PAGE, 'create user deferd').text.split(';'))
        if (statement.trim() !== '') await primary.query(statement)
      const written = blockWith(PAGE, 'node_name = ').text
      const hosts = `127.0.0.1:${primary.port},127.0.0.1:${standby.port}/deferd`
      const commands = blockWith(PAGE, 'deferd check\n').text.trim().split('\n')
      expect(commands).toEqual(['deferd check', 'deferd start', 'deferd node list'])
      for (const [n, folder] of folders.entries()) {
        const toml = written
          .replaceAll('mx1', `mx${n + 1}`)
          .replace('db1.example.com,db2.example.com/deferd?sslmode=verify-full', hosts)
          .replace('/var/lib/deferd', join(folder.path, 'queue'))
        const file = join(folder.path, 'deferd.toml')
        writeFileSync(file, toml)
        // The settings of the test's own daemons must not replace those of the page.
        const run = (command: string) => folder.script(join(ROOT, 'bin/deferd.js'), ...command.split(' ').slice(1), '--config', file)
        const { code, out, err } = await run('deferd check').ended
        expect(code, out + err).toBe(0)
        const daemon = folder.script(join(ROOT, 'bin/deferd.js'), 'start', '--config', file, '-o', 'smtpd_listen=127.0.0.1:0')
        await daemon.prints('queue directory')
        await until('listed', 30_000, async () => (await run('deferd node list').ended).out.includes(`mx${n + 1}`))
      }
    } finally {
      await Promise.all(folders.map((folder) => folder.close()))
      await primary.remove()
      await standby.remove()
    }
  })
})
