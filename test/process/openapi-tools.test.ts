/** Outside tools take the OpenAPI documents of relay and lab: three validators, and two generators whose clients call a running relay. */
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { buildSync } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openDaemonClient } from '../../src/cli/queue-client/api-client.ts'
import { TestLab } from '../support/lab-client.ts'
import { PageDaemon } from '../support/page-daemon.ts'
import { reasonToSkip } from '../support/required.ts'

const root = join(import.meta.dirname, '../..')
const tools = join(root, 'clients/openapi')
const FILES = ['package.json', 'tsconfig.json', 'validate.js', 'with-hey-api.ts', 'with-openapi-typescript.ts']

const isInstalled = existsSync(join(tools, 'node_modules/.package-lock.json'))
const reason = reasonToSkip(
  'clients',
  isInstalled ? null : 'the tools of clients/openapi are not installed: npm ci --prefix clients/openapi',
)

/** Requests of the tools to registries and for telemetry would fail. */
const OFFLINE = { HTTPS_PROXY: 'http://127.0.0.1:9', HTTP_PROXY: 'http://127.0.0.1:9', REDOCLY_TELEMETRY: 'off' }

const folder = mkdtempSync(join(tmpdir(), 'deferd-openapi-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The output of a program of Node in the folder. Rejects when it fails. */
const run = async (program: string, ...args: readonly string[]): Promise<string> =>
  (await promisify(execFile)(process.execPath, [program, ...args], { cwd: folder, env: { ...process.env, ...OFFLINE } })).stdout

async function called(client: string, ...args: readonly string[]): Promise<unknown> {
  buildSync({
    entryPoints: [join(folder, `${client}.ts`)],
    outfile: join(folder, `${client}.mjs`),
    bundle: true,
    platform: 'node',
    format: 'esm',
  })
  return JSON.parse(await run(`${client}.mjs`, ...args))
}

describe.skipIf(reason !== null)(`OpenAPI tools${reason === null ? '' : ` (${reason})`}`, () => {
  let relay: PageDaemon
  let token = ''
  beforeAll(async () => {
    for (const file of FILES) cpSync(join(tools, file), join(folder, file))
    symlinkSync(join(tools, 'node_modules'), join(folder, 'node_modules'))
    relay = await PageDaemon.start({ events: { kept: { to: `file:${join(folder, 'events.jsonl')}` } } })
    const client = await openDaemonClient(relay.queueDirectory)
    token = (await client?.addToken({ name: 'ci', role: 'operator', content: false, destinations: null, duration: null, who: 'ci' })) ?? ''
    await client?.close()
    const described = await fetch(`${relay.url}api/v1/openapi.json`, { headers: { authorization: `Bearer ${token}` } })
    writeFileSync(join(folder, 'relay.json'), await described.text())
    await using lab = await TestLab.open()
    writeFileSync(join(folder, 'lab.json'), (await lab.ask('GET', '/openapi.json')).text)
  })
  afterAll(() => relay.close())

  test('three validators accept the documents', async () => {
    expect(JSON.parse(await run('validate.js', 'relay.json', 'lab.json'))).toEqual([])
  })

  test('the code of two generators passes tsc, and its clients call the relay', async () => {
    for (const name of ['relay', 'lab']) {
      await run('node_modules/openapi-typescript/bin/cli.js', `${name}.json`, '-o', `openapi-typescript/${name}.ts`)
      await run('node_modules/@hey-api/openapi-ts/bin/run.js', '--silent', '--no-log-file', '-i', `${name}.json`, '-o', `hey-api/${name}`)
    }
    await run(join(root, 'node_modules/typescript/bin/tsc'), '-p', '.', '--typeRoots', join(root, 'node_modules/@types'))
    for (const client of ['with-openapi-typescript', 'with-hey-api']) {
      await relay.send([1, 2].map((n) => ({ from: 'app@example.org', to: `${client}-${n}@example.net` })))
      expect(await called(client, relay.url.slice(0, -1), token, `${client}-*`)).toMatchObject({
        recipients: [`${client}-1@example.net`, `${client}-2@example.net`],
        held: 2,
        events: ['message.accepted', 'message.accepted'],
        missing: 'Unknown message',
        wrong: ['/limit'],
      })
    }
  }, 600_000)
})
