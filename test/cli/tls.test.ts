/** `deferd tls`: MTA-STS policies that the queue keeps. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { startDaemon } from '../../src/daemon/daemon.ts'
import type { StsPolicy } from '../../src/store/records/sts-policy.ts'
import { Events } from '../../src/telemetry/events.ts'
import { Operator } from '../support/operator.ts'

const NOW = Date.now()
const POLICY: StsPolicy = {
  domain: 'far.example',
  id: '20261101T',
  mode: 'enforce',
  mx: ['mx.far.example', '*.far.example'],
  text: 'version: STSv1\n',
  fetchedAt: NOW,
  expiresAt: NOW + 604_800_000,
  usedAt: NOW,
  failedAt: null,
  failure: null,
}

let operator: Operator
beforeEach(async () => {
  operator = new Operator()
  operator.clock.step(NOW - operator.clock.now())
  await operator.own(async (store) => {
    await store.records.stsPolicies.keep(POLICY)
    await store.records.stsPolicies.keep({
      ...POLICY,
      domain: 'other.example',
      mode: 'testing',
      failedAt: NOW,
      failure: 'status 404\u001b[31m',
    })
  })
})
afterEach(() => operator.leave())

const tls = (...argv: readonly string[]) => operator.run(['tls', ...argv])

test('policies are listed and shown', async () => {
  expect((await tls('list')).out).toMatch(
    /^DOMAIN {8}MODE {4}ID {8}EXPIRES MX\nfar\.example {3}enforce 20261101T in 7d {3}mx\.far\.example,\*\.far\.example\nother\.example testing /,
  )
  const shown = await tls('show', 'FAR.example.')
  expect(shown.out).toMatch(/^far\.example {2}enforce\n {2}id {12}20261101T\n {2}mx {12}mx\.far\.example, \*\.far\.example\n {2}fetched/)
  expect((await tls('show', 'other.example')).out).toMatch(/last failure {2}\S.*: status 404\?\[31m\n/)
  expect(JSON.parse((await tls('show', 'far.example', '--json')).out)).toEqual({
    domain: 'far.example',
    id: '20261101T',
    mode: 'enforce',
    mx: ['mx.far.example', '*.far.example'],
    max_age: 604_800,
    fetched_time: NOW / 1000,
    expire_time: NOW / 1000 + 604_800,
    used_time: NOW / 1000,
    failed_time: null,
    failure: null,
  })
  expect((await tls('list', '--json')).out.trim().split('\n')).toHaveLength(2)
})

test('a policy is forgotten, also by a running daemon, with a record in the audit log', async () => {
  expect(await tls('forget', 'far.example')).toMatchObject({ code: 0, out: 'far.example: forgotten\n' })
  expect(await tls('forget', 'far.example')).toMatchObject({
    code: 65,
    err: expect.stringContaining('no MTA-STS policy of far.example is kept'),
  })
  expect(await tls('show', 'far.example')).toMatchObject({ code: 65, err: expect.stringContaining('--fetch shows the one') })
  const values = { queue_directory: operator.directory, relayhost: '[127.0.0.1]:9', smtpd_listen: '127.0.0.1:0' }
  const daemon = await startDaemon({ loaded: configFrom(values, 'relay.example'), events: new Events(() => Date.now()) })
  expect(await tls('forget', 'other.example')).toMatchObject({ code: 0 })
  expect(await tls('list')).toMatchObject({ code: 0, out: 'No MTA-STS policies are kept.\n' })
  await daemon.stop()
  expect((await operator.run(['audit', '--json'])).out.match(/"action":"tls-forget"/g)).toHaveLength(2)
})

test('the published policy is fetched through the configured name server', async () => {
  const failed = await tls('-o', 'dns_servers=127.0.0.1:9', 'show', 'far.example', '--fetch', '--json')
  expect(JSON.parse(failed.out)).toMatchObject({
    domain: 'far.example',
    published: { failure: expect.stringContaining('_mta-sts.far.example failed') as string },
  })
})

test('what is no domain is refused', async () => {
  expect(await tls('show', 'far example')).toMatchObject({
    code: 64,
    err: expect.stringContaining('"far example" is not the name of a domain'),
  })
})
