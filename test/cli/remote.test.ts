/** `deferd --host URL --token-file FILE`: every command, from another directory, with tokens of three roles. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openFileReader } from '../../src/cli/queue-client/queue-access.ts'
import { openDaemonClient } from '../../src/cli/queue-client/api-client.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { processShell } from '../../src/cli/process-shell.ts'
import { configFrom } from '../../src/config/load.ts'
import { startDaemon, type Daemon } from '../../src/daemon/daemon.ts'
import { CLIENT_ROLES } from '../../src/http/requester.ts'
import { openQueueReader } from '../../src/store/sqlite/sqlite-reader.ts'
import { queueIdOf } from '../../src/mail/message.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { CERTIFICATE, KEY } from '../support/certificates.ts'
import { Operator, type Ran } from '../support/operator.ts'
import { ask } from '../support/raw-http.ts'
import { portBelowEphemeral } from '../support/ports.ts'

let home: string
let port: number
let daemon: Daemon
let id: string
const elsewhere = new Operator()
const queueDirectory = () => join(home, 'queue')
const tokenFile = (role: string) => join(home, `${role}.token`)
const url = () => `http://127.0.0.1:${port}`

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'deferd-remote-'))
  port = await portBelowEphemeral()
  const settings = {
    queue_directory: queueDirectory(),
    smtpd_listen: '127.0.0.1:0',
    admin_listen: `127.0.0.1:${port}`,
    relayhost: '[127.0.0.1]:1',
  }
  daemon = await startDaemon({ loaded: configFrom(settings, 'relay.example'), events: new Events(() => systemClock.now()) })
  const client = await openDaemonClient(queueDirectory())
  for (const role of CLIENT_ROLES) {
    const rights = { role, content: false, destinations: null, duration: null }
    writeFileSync(tokenFile(role), `${await client?.addToken({ ...rights, name: role, who: 'root' })}\n`)
  }
  const fields = {
    Authorization: `Bearer ${readFileSync(tokenFile('admin'), 'utf8').trim()}`,
    'Content-Type': 'message/rfc822',
  }
  const target = '/api/v1/messages?from=app@us.example&to=ann@far.example'
  expect((await ask(port, { method: 'POST', target, fields, body: 'Subject: hi\r\n\r\nhello\r\n' })).status).toBe(202)
  const reader = openQueueReader(queueDirectory())
  const [listed] = await reader.list(ANY_MESSAGE, { after: 0, limit: 1 })
  id = listed === undefined ? '' : queueIdOf(listed.message)
  await reader.close()
})
afterAll(async () => {
  await daemon.stop()
  elsewhere.leave()
  rmSync(home, { recursive: true })
})

const remote = (role: string, ...argv: readonly string[]): Promise<Ran> =>
  elsewhere.run([...argv.map((word) => (word === 'ID' ? id : word)), '--host', url(), '--token-file', tokenFile(role)])

/** Commands with the least role that they need; null for one that is possible on the machine only. */
const COMMANDS: readonly (readonly [argv: string, role: 'viewer' | 'operator' | 'admin' | null])[] = [
  ['status', 'viewer'],
  ['status --json', 'viewer'],
  ['top --count 1', 'viewer'],
  ['queue list', 'viewer'],
  ['queue list --json', 'viewer'],
  ['queue list --destination x --older-than 1h --tsv', 'viewer'],
  ['queue list --count', 'viewer'],
  ['queue show ID', 'viewer'],
  ['queue cat ID', 'admin'],
  ['queue cat -e ID', 'viewer'],
  ['queue causes --destination smtp:[127.0.0.1]:1', 'viewer'],
  ['queue shape', 'viewer'],
  ['queue shape --senders', 'viewer'],
  ['queue hold --all --dry-run --json', 'operator'],
  ['queue hold --all', 'operator'],
  ['queue release ID', 'operator'],
  ['queue flush --older-than 1h', 'operator'],
  ['queue expire --destination none.example', 'operator'],
  ['queue requeue --destination none.example', 'operator'],
  ['queue reschedule --destination none.example --in 2h', 'operator'],
  ['queue delete --destination none.example', 'operator'],
  ['queue restore --destination none.example', 'operator'],
  ['queue move --to /tmp/other', null],
  ['queue upgrade', null],
  ['history list', 'viewer'],
  ['history list --since 1h --json', 'viewer'],
  ['destination list', 'viewer'],
  ['destination show [127.0.0.1]:1', 'viewer'],
  ['destination suspend smtp:[127.0.0.1]:1 --for 1h --reason test', 'operator'],
  ['destination resume smtp:[127.0.0.1]:1', 'operator'],
  ['audit', 'viewer'],
  ['audit --limit 2 --json', 'viewer'],
  ['operation list', 'viewer'],
  ['operation list --json', 'viewer'],
  ['operation undo 99', 'viewer'],
  ['operation cancel 99', 'viewer'],
  ['token list', 'admin'],
  ['token add new --role viewer', 'admin'],
  ['token remove new', 'admin'],
  ['webhook list', 'viewer'],
  ['webhook add app https://app.example/hook', 'admin'],
  ['webhook secret app', 'admin'],
  ['webhook replay app', 'operator'],
  ['webhook test app', 'operator'],
  ['webhook remove app', 'admin'],
  ['access add sender app@example.com REJECT', 'admin'],
  ['access list', 'viewer'],
  ['access remove sender app@example.com', 'admin'],
  ['tls list', 'viewer'],
  ['tls show none.example', 'viewer'],
  ['tls forget none.example', 'operator'],
  ['node list', 'viewer'],
  ['node show mx1', 'viewer'],
  ['node drain mx1', 'viewer'],
  ['node undrain mx1', 'viewer'],
  ['node forget mx1', 'viewer'],
  ['schedule list', 'viewer'],
  ['schedule show nightly', 'viewer'],
  ['schedule run nightly', 'operator'],
  ['oauth list', 'viewer'],
  ['oauth show m365', null],
  ['oauth test m365', null],
  ['oauth login m365', null],
  ['start', null],
  ['reload', null],
  ['demo', null],
  ['lab', null],
  ['retry true', null],
  ['config', null],
  ['map query hash:/x y', null],
  ['check', null],
  ['check domain example.com', null],
  ['import postfix', null],
  ['backup /tmp/x', null],
  ['restore /tmp/x', null],
  ['salvage /tmp/x /tmp/y', null],
  ['page', null],
  ['user add ann', null],
  ['user list', null],
  ['user remove ann', null],
  ['dkim generate example.com', null],
  ['dkim show', null],
  ['dkim check', null],
  ['dkim sign', null],
  ['dkim verify', null],
  ['bounce preview', null],
  ['simulate schedule', null],
  ['simulate run x.toml', null],
  ['simulate contention', null],
  ['sink', null],
  ['sink show 1', null],
  ['record --relay 127.0.0.1:25', null],
]

/** Outcomes that are those of the data here. */
const UNKNOWN = /^(?:operation (?:undo|cancel) 99|tls (?:show|forget)|destination show|schedule (?:show|run))/

const sentence = /^deferd: [^\n]+\n$/

describe.each(['viewer', 'operator', 'sender', 'admin'] as const)('%s', (role) => {
  const rights = { viewer: ['viewer'], operator: ['viewer', 'operator'], sender: [], admin: ['viewer', 'operator', 'admin'] }[role]

  test.each(COMMANDS)('%s', async (line, needed) => {
    const { code, out, err } = await remote(role, ...line.split(' '))
    if (needed === null) {
      expect([code, out]).toEqual([64, ''])
      expect(err).toMatch(/^deferd: [^\n]* is possible on the machine of the relay only, because [^\n]*\n$/)
    } else if (!rights.some((one) => one === needed)) {
      expect([code, out, err]).toEqual([77, '', expect.stringMatching(sentence)])
    } else if (line.startsWith('node ')) {
      expect([code, out, err]).toEqual([69, '', expect.stringMatching(/^deferd: the queue is in a folder and has one daemon: [^\n]+\n$/)])
    } else if (UNKNOWN.test(line) || (role === 'operator' && /^webhook (?:replay|test) app$/.test(line))) {
      expect([code, err]).toEqual([65, expect.stringMatching(sentence)])
    } else if (line === 'webhook test app') {
      expect([code, out]).toEqual([75, expect.stringContaining('did not take the event')])
    } else expect([code, err]).toEqual([0, line.startsWith('token add') || line.startsWith('webhook') ? expect.any(String) : ''])
  })
})

test('each command is in the table', async () => {
  const program = await buildProgram(processShell())
  const names = (command: typeof program, before: string): readonly string[] =>
    command.commands.length === 0 ? [before.trim()] : command.commands.flatMap((one) => names(one, `${before} ${one.name()}`))
  const missing = names(program, '').filter((words) => !COMMANDS.some(([line]) => line === words || line.startsWith(`${words} `)))
  expect(missing.filter((words) => words !== 'help')).toEqual([])
})

/** Commands whose output on this machine and from elsewhere is equal. */
const SHOWN: readonly string[] = [
  'status',
  'top --count 1',
  'queue list',
  'queue list --wide',
  'queue list --tsv',
  'queue list --json',
  'queue list --count',
  'queue list --count --json',
  'queue list --destination none.example',
  'queue list --limit 1 --tsv',
  'queue show ID',
  'queue show ID --json',
  'queue cat ID',
  'queue cat -e ID',
  'queue cat -b ID',
  'queue causes',
  'queue causes --json',
  'queue causes --details',
  'queue causes --details --json',
  'queue causes --destination [127.0.0.1]:1',
  'queue shape',
  'queue shape --senders --json',
  'queue shape --addresses --tsv',
  'history list',
  'history list --tsv',
  'history list --json',
  'history list --limit 1 --json',
  'destination list',
  'destination list --all --sort name',
  'destination list --tsv',
  'destination list --json',
  'destination show [127.0.0.1]:1',
  'destination show [127.0.0.1]:1 --json',
  'destination show none.example',
  'audit',
  'audit --tsv',
  'audit --json',
  'audit --limit 2',
  'audit --before 3 --limit 1 --json',
  'token list',
  'token list --json',
  'webhook list',
  'webhook list --json',
  'access list',
  'access list --json',
  'tls list',
  'tls list --json',
  'tls show none.example',
  'schedule list',
  'schedule list --json',
  'oauth list',
  'oauth list --json',
  'queue show none',
  'queue cat none',
]

/** The API has figures of some seconds ago, and windows of the destinations with the most mail only. */
const withoutFigures = (line: string, text: string): string =>
  /^(?:status|top)/.test(line)
    ? text
        .replaceAll(/\s+/g, ' ')
        .replace(', 0/5 in flight', '')
        .replaceAll(/\d+[hms](?: \d+[hms])?|\d\d:\d\d:\d\d|\d\.\d\/s/g, 'T')
    : text

describe('the output is that of the machine of the relay', () => {
  beforeAll(async () => {
    for (const line of [
      'webhook add ledger https://ledger.example/hook --types recipient.*',
      'access add sender app@example.com REJECT too many bounces --for 2h',
      'destination suspend away.example --for 2h --reason maintenance',
    ])
      expect(await remote('admin', ...line.split(' '))).toMatchObject({ code: 0 })
    const fields = {
      Authorization: `Bearer ${readFileSync(tokenFile('admin'), 'utf8').trim()}`,
      'Content-Type': 'message/rfc822',
    }
    for (const to of ['to=bob@far.example&to=eve@other.example', 'to=gone@far.example']) {
      const target = `/api/v1/messages?from=app@us.example&${to}`
      const answer = await ask(port, { method: 'POST', target, fields, body: 'Subject: hi\r\n\r\nhello\r\n' })
      if (to.startsWith('to=gone')) {
        const { queue_id: gone } = JSON.parse(answer.body) as { readonly queue_id: string }
        expect((await remote('admin', 'queue', 'delete', gone, '--now')).code).toBe(0)
      }
    }
  })

  test.each(SHOWN)('%s', async (line) => {
    const argv = line.split(' ').map((word) => (word === 'ID' ? id : word))
    const place = { clock: systemClock, columns: 80 }
    const here = () =>
      elsewhere.run(argv, {
        ...place,
        env: { DEFERD_QUEUE_DIRECTORY: queueDirectory() },
        access: { openReader: (config) => openFileReader(config, systemClock) },
      })
    const there = () => elsewhere.run([...argv, '--host', url(), '--token-file', tokenFile('admin')], place)
    // Times that pass between the two, and figures that the API keeps for some seconds, differ for a moment.
    await expect
      .poll(
        async () => {
          const [one, other] = [await here(), await there()]
          return withoutFigures(line, one.out) === withoutFigures(line, other.out) && one.code === other.code && one.err === other.err
            ? 'equal'
            : { here: one, there: other }
        },
        { timeout: 60_000, interval: 200 },
      )
      .toBe('equal')
  })
})

test('a change is made by the name of the token', async () => {
  await remote('operator', 'queue', 'hold', 'ID')
  expect(JSON.parse((await remote('viewer', 'audit', '--limit', '1', '--json')).out)).toMatchObject({
    action: 'hold',
    who: 'token:operator (127.0.0.1)',
  })
  expect((await remote('viewer', 'queue', 'list', '--queue', 'hold', '--json')).out).toContain(id)
  expect(await elsewhere.run(['--host', url(), '--token-file', tokenFile('operator'), 'queue', 'release', id])).toMatchObject({
    code: 0,
    out: '1 message released\n',
  })
})

describe('what cannot work is said in one sentence', () => {
  const failing = async (host: string, file: string | null, argv = ['queue', 'list']): Promise<Ran> =>
    elsewhere.run(['--host', host, ...(file === null ? [] : ['--token-file', file]), ...argv])

  test.each([
    ['http://relay.example.com:2580', 64, 'cross the network in clear'],
    ['relay.example.com', 64, 'expected a URL'],
    ['https://user@relay.example.com', 64, 'expected a URL'],
    ['https://127.0.0.1:1', 69, 'cannot reach https://127.0.0.1:1'],
    ['http://[::1]:1', 69, 'cannot reach http://[::1]:1'],
  ])('%s', async (host, code, text) => {
    const ran = await failing(host, tokenFile('viewer'))
    expect([ran.code, ran.out, ran.err]).toEqual([code, '', expect.stringMatching(sentence)])
    expect(ran.err).toContain(text)
  })

  test('a token file that is missing, empty or not named, and a token that is unknown', async () => {
    expect(await failing(url(), null)).toMatchObject({ code: 64, err: expect.stringContaining('--token-file') as string })
    expect(await failing(url(), join(home, 'none'))).toMatchObject({ code: 78, err: expect.stringMatching(sentence) as string })
    const file = join(home, 'other.token')
    writeFileSync(file, '')
    expect(await failing(url(), file)).toMatchObject({ code: 78, err: expect.stringMatching(sentence) as string })
    writeFileSync(file, 'dfd_unknown')
    expect(await failing(url(), file)).toMatchObject({
      code: 77,
      err: `deferd: ${url()} does not accept the token: the token is unknown or has expired\n`,
    })
  })

  test('a path that is not that of the API, and a port without TLS', async () => {
    expect(await failing(`${url()}/prefix`, tokenFile('viewer'))).toMatchObject({
      code: 69,
      err: expect.stringMatching(sentence) as string,
    })
    const tls = await failing(`https://127.0.0.1:${port}`, tokenFile('viewer'))
    expect([tls.code, tls.err]).toEqual([69, expect.stringMatching(/^deferd: no TLS connection to https:[^\n]+\n$/)])
  })
})

test('a dry run without --json would show messages of this machine', async () => {
  const { code, out, err } = await remote('operator', 'queue', 'hold', '--all', '--dry-run')
  expect([code, out, err]).toEqual([64, '', expect.stringMatching(sentence)])
})

test('a certificate of an unknown authority is refused', async () => {
  const server = createServer({ cert: CERTIFICATE, key: KEY })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const host = `https://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
  const { code, err } = await elsewhere.run(['--host', host, '--token-file', tokenFile('viewer'), 'status'])
  server.close()
  expect([code, err]).toEqual([69, expect.stringMatching(/^deferd: no TLS connection to [^\n]+NODE_EXTRA_CA_CERTS\n$/)])
})
