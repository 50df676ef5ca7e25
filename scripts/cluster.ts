/**
 * Starts PostgreSQL from the development dependency, three nodes on one queue in it, and a sink that receives their mail, on this
 * machine. Ends all of them at Ctrl-C. The folder keeps the queue for the next start.
 *
 *   node scripts/cluster.ts [FOLDER] [--database]
 *
 * `--database` starts PostgreSQL alone, with a synchronous standby.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { createWriteStream, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { reasonWithoutPostgres, startPostgres, type PostgresServer } from '../test/support/postgres-server.ts'

const PROGRAM = join(import.meta.dirname, '../bin/deferd.js')
const NODES = ['n1', 'n2', 'n3']
const FIRST_SMTP_PORT = 2601
const FIRST_HTTP_PORT = 2611
const SINK_PORT = 2620
const DATABASE_PORT = 2630
const STANDBY_PORT = 2631

const reason = reasonWithoutPostgres()
if (reason !== null) {
  console.error(reason)
  process.exit(69)
}
const { positionals, values } = parseArgs({ allowPositionals: true, options: { database: { type: 'boolean', default: false } } })
const folder = resolve(positionals[0] ?? 'deferd-cluster')
const servers = values.database ? await startWithStandby() : [await startPostgres({ folder: folderOf('database'), port: DATABASE_PORT })]

function folderOf(name: string): string {
  const path = join(folder, name)
  mkdirSync(path, { recursive: true })
  return path
}

/** The standby is a copy of the stopped primary. */
async function startWithStandby(): Promise<readonly PostgresServer[]> {
  const primary = await startPostgres({ folder: folderOf('database'), port: DATABASE_PORT })
  const at = { folder: folderOf('standby'), port: STANDBY_PORT, follows: primary }
  const isNew = !existsSync(join(at.folder, 'data'))
  if (isNew) await primary.stop()
  const standby = await startPostgres(isNew ? { ...at, copyOf: primary } : at)
  if (!isNew) await primary.stop()
  await primary.start({ synchronous_standby_names: 'standby' })
  return [primary, standby]
}

const children: ChildProcess[] = []
function run(name: string, args: readonly string[]): void {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'], cwd: folder })
  const log = createWriteStream(join(folder, `${name}.log`), { flags: 'a' })
  child.stdout.pipe(log)
  child.stderr.pipe(log)
  child.once('exit', (code, signal) => console.log(`${name} ended (${signal ?? code})`))
  children.push(child)
}

function startNodes(): void {
  const config = join(folder, 'deferd.toml')
  writeFileSync(
    config,
    `queue_database = "postgresql://postgres@127.0.0.1:${DATABASE_PORT}/postgres"
queue_database_durability = "primary" # this server has no standby
queue_directory = "${join(folder, 'command')}"
relayhost = ["[127.0.0.1]:${SINK_PORT}"]
`,
  )
  run('sink', ['sink', '--listen', `127.0.0.1:${SINK_PORT}`, '--keep', join(folder, 'received')])
  for (const [n, name] of NODES.entries()) {
    const settings = [
      `node_name=${name}`,
      `queue_directory=${join(folder, name)}`,
      `smtpd_listen=127.0.0.1:${FIRST_SMTP_PORT + n}`,
      `http_listen=127.0.0.1:${FIRST_HTTP_PORT + n}`,
    ]
    run(name, ['start', '--config', config, ...settings.flatMap((setting) => ['-o', setting])])
  }

  console.log(`Nodes ${NODES.join(', ')} accept mail at 127.0.0.1, ports ${FIRST_SMTP_PORT} to ${FIRST_SMTP_PORT + NODES.length - 1}; a sink receives theirs.
Logs, received mail and the database are in ${folder}. Ctrl-C ends all. From another terminal:

  export DEFERD_CONFIG=${config}
  npx deferd node list
  printf 'Subject: hello\\n\\nIt works.\\n' | npx deferd sendmail -v -o queue_directory=${join(folder, 'n1')} -f me@example.com you@example.net
  npx deferd history list
  kill -9 ${children[1]?.pid}    # n1: the others take its mail over
`)
}

if (values.database) {
  const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join(',')
  console.log(
    `PostgreSQL and its synchronous standby run. Ctrl-C ends both.\n\n  queue_database = "postgresql://postgres@${hosts}/postgres"\n`,
  )
} else startNodes()

async function end(): Promise<void> {
  const running = children.filter((child) => child.exitCode === null && child.signalCode === null)
  const ended = running.map((child) => new Promise((done) => child.once('exit', done)))
  for (const child of running) child.kill('SIGTERM')
  await Promise.all(ended)
  for (const server of servers) await server.stop()
}
process.once('SIGINT', () => void end())
process.once('SIGTERM', () => void end())
