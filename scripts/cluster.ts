/**
 * Starts PostgreSQL from the development dependency, three nodes on one queue in it, and a sink that receives their mail, on this
 * machine. Ends all of them at Ctrl-C. The folder keeps the queue for the next start.
 *
 *   node scripts/cluster.ts [FOLDER]
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { createWriteStream, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { reasonWithoutPostgres, startPostgres } from '../test/support/postgres-server.ts'

const PROGRAM = join(import.meta.dirname, '../bin/deferd.js')
const NODES = ['n1', 'n2', 'n3']
const FIRST_SMTP_PORT = 2601
const FIRST_HTTP_PORT = 2611
const SINK_PORT = 2620
const DATABASE_PORT = 2630

const reason = reasonWithoutPostgres()
if (reason !== null) {
  console.error(reason)
  process.exit(69)
}
const folder = resolve(process.argv[2] ?? 'deferd-cluster')
mkdirSync(join(folder, 'database'), { recursive: true })
const server = await startPostgres({ folder: join(folder, 'database'), port: DATABASE_PORT })

const config = join(folder, 'deferd.toml')
writeFileSync(
  config,
  `queue_database = "${server.url()}"
queue_database_durability = "primary" # this server has no standby
queue_directory = "${join(folder, 'command')}"
relayhost = ["[127.0.0.1]:${SINK_PORT}"]
`,
)

const children: ChildProcess[] = []
function run(name: string, args: readonly string[]): void {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'pipe'], cwd: folder })
  const log = createWriteStream(join(folder, `${name}.log`), { flags: 'a' })
  child.stdout.pipe(log)
  child.stderr.pipe(log)
  child.once('exit', (code, signal) => console.log(`${name} ended (${signal ?? code})`))
  children.push(child)
}

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
  printf 'Subject: hello\\n\\nIt works.\\n' | npx deferd sendmail -v -o smtpd_listen=127.0.0.1:${FIRST_SMTP_PORT} -f me@example.com you@example.net
  npx deferd history list
  kill -9 ${children[1]?.pid}    # n1: the others take its mail over
`)

async function end(): Promise<void> {
  const running = children.filter((child) => child.exitCode === null && child.signalCode === null)
  const ended = running.map((child) => new Promise((done) => child.once('exit', done)))
  for (const child of running) child.kill('SIGTERM')
  await Promise.all(ended)
  await server.stop()
}
process.once('SIGINT', () => void end())
process.once('SIGTERM', () => void end())
